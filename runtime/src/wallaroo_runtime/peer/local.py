"""A local gateway or egress: a child process that outlives the driver, so senders and receivers stay connected."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Kind
from wallaroo.emit.module import module_command
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.peer import Peer, Request
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import Away, ServiceClient, close_channel
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.service.failure import read_failures
from wallaroo_runtime.service.local import READY, socket_in
from wallaroo_runtime.system.process import alive

NAMES = ("gateway", "egress")
READY_DEADLINE_S = 60.0
ATTACH_S = 60.0  # an egress first delivers for some seconds before it takes another configuration
STOP_DEADLINE_S = 10.0
POLL_S = 0.05
SIGNAL_S = 1.0  # if the system stops a run, all its processes get the signal within this time
RESTART_LIMIT, RESTART_WINDOW_S = 10, 60.0


def stop_left_behind(checkpoint: Path) -> None:
    """End the gateway and the egress that an earlier driver has started, before their files are changed or removed."""
    for name in NAMES:
        LocalPeer(name, checkpoint).stop()


@contextmanager
def local_service(checkpoint: Path, name: str) -> Iterator[Service]:
    """Yield the address of a checkpoint's gateway or egress for gRPC calls in the block. Its socket must exist.

    The channel for calls ends with the block. After the attach, the driver reads the status from a file.
    """
    with socket_in(checkpoint / name) as path:
        service = Service(name, f"unix:{path}")
        try:
            yield service
        finally:
            close_channel(service)


class LocalPeer(Peer):
    """A gateway or egress that the driver starts as a process. It serves on a Unix socket in the checkpoint.

    The process has its own session, so it gets no signals of the driver's terminal.

    Args:
        name: `gateway` or `egress`; also the name of its files.
    """

    def __init__(self, name: str, checkpoint: Path) -> None:
        super().__init__(Service(name, f"{checkpoint}/{name}/socket"), checkpoint)
        self._checkpoint = checkpoint
        self.log = checkpoint / "logs" / f"{name}.log"
        self._status_path = checkpoint / f"{name}.json"
        self._child: subprocess.Popen[bytes] | None = None
        self._ready: int | None = None
        self._log_begin = 0
        self._request: Request | None = None
        self._starts: deque[float] = deque()
        self._stopped_since: float | None = None

    def launch(self) -> None:
        """Start the process, unless the process of an earlier driver still runs."""
        if not self._serves():
            self._start()

    def _serves(self) -> bool:
        try:
            with socket_in(self._checkpoint / self.name) as path, socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(STOP_DEADLINE_S)
                probe.connect(path)
        except OSError:
            return False
        return True

    def _start(self) -> None:
        self.stop()
        self._stopped_since = None
        self._status_path.unlink(missing_ok=True)
        self._document = {}
        ready, driver = os.pipe2(os.O_CLOEXEC)
        with self.log.open("ab") as log, os.fdopen(driver, "wb"):
            self._log_begin = log.tell()
            self._child = subprocess.Popen(
                module_command(sys.executable, f"wallaroo_runtime.{self.name}", str(self._checkpoint), str(driver)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                umask=0o077,
                pass_fds=[driver],
            )
        self._ready = ready

    def wait_ready(self) -> None:
        """Wait until the child reports that it serves. Raise the error that it reports instead."""
        if self._ready is None:
            return
        with os.fdopen(self._ready, "rb") as ready:
            self._ready = None
            answer = ready.read() if select.select([ready], [], [], READY_DEADLINE_S)[0] else None
        if answer == READY:
            return
        findings = read_failures(answer or b"")
        if answer is None:
            reason = f"it was not ready after {READY_DEADLINE_S:g} s"
            error = RunError.of("R617", process=self.name, reason=reason, log=self.log)
        else:
            self._wait_end()
            error = RunError(findings) if findings else self.ending()
        self.stop()
        raise error

    def attach(self, request: Request) -> None:
        """Make this process the driver of the peer. If a peer of an earlier driver fails now, start a new one."""
        self._request = request
        try:
            self._attach(request)
        except RunError:
            if self._child is not None:
                raise
            self._start()
            self._attach(request)

    def _attach(self, request: Request) -> None:
        self.wait_ready()
        with self._endpoint() as service:
            try:
                reply: pb.AttachReply = ServiceClient(service).look("Attach", request, ATTACH_S)
            except Away as error:
                if self.is_alive():
                    raise
                raise self.ending() from error
        self._take(reply)
        self._directory = Path(reply.directory)

    def _endpoint(self) -> AbstractContextManager[Service]:
        return local_service(self._checkpoint, self.name)

    def _look(self) -> None:
        """Ask the process for its status if its status file is missing: on a full disk, or soon after its start."""
        if (self._checkpoint / self.name / "socket").exists():
            super()._look()

    def is_alive(self) -> bool:
        """Say whether the process still runs."""
        if self._child is not None:
            return self._child.poll() is None
        return self._pid() is not None

    def _pid(self) -> int | None:
        """Return the pid in the status of the peer; None if the process with this pid has ended."""
        process = alive(self.status())
        return process.pid if process else None

    def ending(self) -> RunError:
        """Return the reason why the process ended: the findings of its status, else the last line of its log.

        A process that was killed has not written why, so its last line is about something else.
        """
        if (failure := self.failure()) is not None:
            return failure
        code = self._child.poll() if self._child is not None else None
        reason = "exit code unknown" if code is None else f"exit code {code}" if code >= 0 else f"signal {-code}"
        last = "" if code == -signal.SIGKILL else _last_line(self.log, self._log_begin)
        return RunError.of("R617", process=self.name, reason=f"{reason}; {last}" if last else reason, log=self.log)

    def check(self, note: Callable[[str], None]) -> None:
        """Start the process again if it has ended. No data are lost, because journal and outbox are on the disk."""
        while not self.is_alive() and not self._may_be_stopping():
            error, before = self.ending(), self.addresses()
            if error.kind is not Kind.ENDED or not self._may_start():
                raise error
            assert self._request is not None
            self._start()
            try:
                self._attach(self._request)
            except RunError as again:
                if again.kind is not Kind.ENDED:
                    raise
                continue
            note(f"{error.diagnostics[0].message}; it was started again")
            for name, address in self.addresses():
                if (name, address) not in before:
                    note(f'source "{name}" now listens at {address}')

    def _may_be_stopping(self) -> bool:
        """Say whether the process has just ended with exit code 0. Then a signal may soon end the driver, too."""
        if self._child is None or self._child.poll() != 0:
            return False
        now = time.monotonic()
        self._stopped_since = self._stopped_since or now
        return now - self._stopped_since < SIGNAL_S

    def _may_start(self) -> bool:
        now = time.monotonic()
        while self._starts and now - self._starts[0] > RESTART_WINDOW_S:
            self._starts.popleft()
        self._starts.append(now)
        return len(self._starts) <= RESTART_LIMIT

    def stop(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """End the process: by SIGTERM, and after the deadline by SIGKILL."""
        if self._ready is not None:
            os.close(self._ready)
            self._ready = None
        for number in (signal.SIGTERM, signal.SIGKILL):
            pid = self._child.pid if self._child is not None else self._pid()
            if pid is None or not self.is_alive():
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            self._wait_end(deadline_s)

    def _wait_end(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        end = time.monotonic() + deadline_s
        while self.is_alive() and time.monotonic() < end:
            self.status()  # gets the last status by a call if no file has it
            time.sleep(POLL_S)


def _last_line(path: Path, begin: int) -> str:
    """Return the last line of a log that begins after the offset `begin`. Earlier processes wrote the part before."""
    try:
        with path.open("rb") as file:
            file.seek(max(begin, path.stat().st_size - 4096))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]
