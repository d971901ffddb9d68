"""Run in the namespaces of `host.py`: `serve` gives sockets, `enter` starts a command on a host, `here` next to us."""

import array
import ctypes
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from types import FrameType

NAMESPACES = ("user", "pid", "net", "mnt")
FORWARDED = (signal.SIGINT, signal.SIGTERM)
PR_SET_PDEATHSIG = 1
REAP_S = 0.2
CONNECT_S = 10.0

_libc = ctypes.CDLL(None, use_errno=True)


def serve(control: socket.socket) -> None:
    """Answer requests for sockets of this network namespace until the other side is gone.

    This is the first process of its process namespace, so that everything in it ends with us.
    """
    while True:
        while not select.select([control], [], [], REAP_S)[0]:
            _reap()
        request = control.recv(4096)
        if not request:
            return
        try:
            with _socket(*json.loads(request)) as made:
                made.setblocking(True)  # who gets it knows nothing of our deadline
                descriptor = array.array("i", [made.fileno()])
                control.sendmsg([b"{}"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)])
        except OSError as error:
            control.send(json.dumps({"errno": error.errno, "text": error.strerror or str(error)}).encode())


def _socket(kind: str, host: str, port: int) -> socket.socket:
    if kind == "listen":
        return socket.create_server((host, port))
    return socket.create_connection((host, port), timeout=CONNECT_S)


def _reap() -> None:
    """Take what ended and no longer has a parent."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return


def enter(process: int, directory: str, command: Sequence[str]) -> int:
    """Run a command in the namespaces of a process; signals go to it, and it dies with us.

    Returns:
        Its exit code.
    """
    paths = [(f"/proc/{process}/ns/{name}", f"/proc/self/ns/{name}") for name in NAMESPACES]
    for descriptor in [os.open(its, os.O_RDONLY) for its, ours in paths if os.readlink(its) != os.readlink(ours)]:
        if _libc.setns(descriptor, 0):
            raise OSError(ctypes.get_errno(), "setns")
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until they are forwarded
    child = os.fork()  # what becomes of the process namespace is for children
    if not child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        run_here(directory, command)

    def forward(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in FORWARDED:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:  # end as it did
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def run_here(directory: str, command: Sequence[str]) -> None:
    """Become a command, which dies with who started it."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(directory)
    os.execvp(command[0], command)


if __name__ == "__main__":
    verb, first, *rest = sys.argv[1:]
    if verb == "serve":
        serve(socket.socket(fileno=int(first)))
    elif verb == "enter":
        sys.exit(enter(int(first), rest[0], rest[1:]))
    else:
        run_here(first, rest)
