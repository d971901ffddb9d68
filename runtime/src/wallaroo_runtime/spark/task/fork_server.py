"""A process with what Spark's Python processes import already in memory: they are forks of it.

For each query Spark starts processes that plan sources and prepare states, and the daemon of its tasks (`daemon`). As
new ones each would import PySpark and Arrow: half a second to one of a processor, and 40 to 70 MB.

A client (`fork_client`) connects, hands over its arguments, variables and standard descriptors, and stands for the
fork: it gets its exit status, and its end ends the fork. The server ends when its standard input does.
"""

import contextlib
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import traceback

from wallaroo_runtime.spark.task.daemon import preload
from wallaroo_runtime.spark.task.fork_client import LENGTH, STANDARD, TAKEN
from wallaroo_runtime.system.process import parent_of
from wallaroo_runtime.worker.owner_process import ABOVE

REQUEST_S = 10.0
FIRST_BYTES = 65_536
INPUT = 0
PEER = struct.Struct("3i")  # process, user and group
MODULES = (
    "pyspark.daemon",
    *(f"pyspark.sql.worker.{name}" for name in ("create_data_source", "lookup_data_sources", "plan_data_source_read")),
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "wallaroo_runtime.spark.task.journal_source",
)


class ForkServer:
    """Forks for clients.

    Args:
        listener: Where they connect.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener, self._clients = listener, dict[int, socket.socket]()  # by the fork that a client stands for
        self._selector = selectors.DefaultSelector()
        self._ended, self._wake = socket.socketpair()

    def serve(self) -> None:
        """Serve until the standard input ends."""
        self._ended.setblocking(False)
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for part in (INPUT, self._listener, self._ended):
            self._selector.register(part, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == INPUT:
                    return
                if key.fileobj is self._listener:
                    self._take()
                elif key.fileobj is self._ended:
                    self._reap()
                else:
                    self._end(key.data)

    def _take(self) -> None:
        client, _ = self._listener.accept()
        client.settimeout(REQUEST_S)
        try:
            content, descriptors = receive(client)
            pid = os.fork()
        except (OSError, ValueError):
            client.close()  # it does without
            return
        if pid == 0:
            self._become(client, content, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._clients[pid] = client
        self._selector.register(client, selectors.EVENT_READ, pid)
        with contextlib.suppress(OSError):  # then its end ends the fork
            client.sendall(TAKEN)

    def _become(self, client: socket.socket, content: bytes, descriptors: list[int]) -> None:
        """Be the process that the client asked for; returns never."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # as Java's processes have it
            above = parent_of(peer_of(client))
            for each in (client, self._listener, self._ended, self._wake, *self._clients.values()):
                each.close()
            self._selector.close()
            status = run(content, descriptors, above)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status & 0xFF)

    def _reap(self) -> None:
        """Tell clients how their forks have ended."""
        with contextlib.suppress(BlockingIOError):
            while self._ended.recv(FIRST_BYTES):
                pass
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                client = self._clients.pop(pid)
                with contextlib.suppress(KeyError):  # the client has ended before
                    self._selector.unregister(client)
                with contextlib.suppress(OSError):
                    client.sendall(b"%d\n" % (os.waitstatus_to_exitcode(status) & 0xFF))
                client.close()

    def _end(self, pid: int) -> None:
        """End the fork whose client has ended; `_reap` forgets it."""
        if pid in self._clients:  # else both have ended at once
            self._selector.unregister(self._clients[pid])
            os.kill(pid, signal.SIGTERM)


def receive(client: socket.socket) -> tuple[bytes, list[int]]:
    """Return what a client asks for, and its standard descriptors.

    Raises:
        OSError: It ends, or takes too long.
        ValueError: It is no client of ours.
    """
    content, descriptors, _, _ = socket.recv_fds(client, FIRST_BYTES, 3)
    try:
        while len(content) < LENGTH.size or len(content) < LENGTH.size + LENGTH.unpack_from(content)[0]:
            more = client.recv(FIRST_BYTES)
            if not more:
                reason = "the client has ended"
                raise ConnectionError(reason)
            content += more
        if len(descriptors) != len(STANDARD):
            reason = f"{len(descriptors)} descriptors instead of {len(STANDARD)}"
            raise ValueError(reason)
    except (OSError, ValueError):
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return content[LENGTH.size :], list(descriptors)


def peer_of(client: socket.socket) -> int:
    """Return the process of a client."""
    return int(PEER.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))[0])


def run(content: bytes, descriptors: list[int], above: int | None) -> int:
    """Run a module as a program, as a client asks for it; returns its exit code.

    Args:
        content: See `fork_client.request`.
        descriptors: Its standard ones.
        above: The process that has started the client: that of Java, which is not above this fork.
    """
    for number, descriptor in zip(STANDARD, descriptors, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    directory, count, *parts = content.split(b"\0")
    arguments, variables = parts[: int(count)], parts[int(count) :]
    os.chdir(directory)
    os.environb.clear()
    for variable in variables:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    if above is not None:
        os.environ[ABOVE] = str(above)
    module, *rest = map(os.fsdecode, arguments)
    sys.argv = [module, *rest]
    sys.modules.pop(module, None)  # else it would be said that it was imported before it was run
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main() -> None:
    """Become the server at the path that is given: clients may connect, and wait, while it imports."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(socket.SOMAXCONN)
    preload(MODULES)
    ForkServer(listener).serve()


if __name__ == "__main__":
    main()
