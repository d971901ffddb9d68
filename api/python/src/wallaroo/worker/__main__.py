"""`python -m wallaroo.worker APP`: runs user code for the runtime, or writes the program's topology."""

import _thread
import atexit
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.emit.emit import application_args, emit_to_file, leave, write_result
from wallaroo.emit.module import module_command
from wallaroo.emit.program import load
from wallaroo.worker.bucket.state import MAX_STATE_BYTES
from wallaroo.worker.host.call import CallRunner
from wallaroo.worker.host.debugger import has_terminal, refuse_breakpoints
from wallaroo.worker.host.descriptor import guard_descriptors, open_descriptors
from wallaroo.worker.host.gc import collect_less
from wallaroo.worker.host.process import (
    NUMBER,
    WorkerChildren,
    end_with_parent,
    socket_path,
    tell_end,
    tell_ready,
)

if TYPE_CHECKING:
    from wallaroo.worker.host.server import WorkerServer

USAGE_STATUS = 2
SETUP_STATUS = 3
DIED_STATUS = 1
LOOK_S = 0.2
DEFAULT_CACHE_BYTES = 512 * 1024 * 1024  # the default in SPECIFICATION.md


def main(arguments: Sequence[str]) -> int:
    """Serve the runtime's calls, or write the topology, as WALLAROO_MODE says. Return the exit status."""
    mode = os.environ.get("WALLAROO_MODE")
    needed = {"worker": "WALLAROO_WORKER_DIR", "emit": "WALLAROO_EMIT_FILE"}
    if len(arguments) != 1 or mode not in needed or not os.environ.get(needed[mode]):
        program = arguments[0] if arguments else "APP"
        print(Diagnostic.of("W412", program=program), file=sys.stderr)
        return USAGE_STATUS
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    if mode == "emit":
        emit_to_file(arguments[0], os.environ["WALLAROO_EMIT_FILE"])
        return 0
    directory = Path(os.environ["WALLAROO_WORKER_DIR"])
    try:
        return serve(arguments[0], directory)
    except DiagnosticError as err:
        write_result(
            str(directory / "failure.json"), {"diagnostics": [finding.to_json() for finding in err.diagnostics]}
        )
        print(err, file=sys.stderr)
        return SETUP_STATUS


def serve(app: str, directory: Path) -> int:
    """Serve calls until a signal, and return the exit status. Exit at once if another process of the worker ends.

    Raises:
        DiagnosticError: The program's setup fails, or the socket cannot be made.
    """
    number = int(os.environ.get(NUMBER, "0"))
    count = max(1, int(os.environ.get("WALLAROO_WORKER_PROCESSES", "1")))
    stopped, first = threading.Event(), threading.Lock()

    def stop(*_: object) -> None:
        # Not in this thread, which may hold the event's lock at this moment, and would wait for it forever.
        _thread.start_new_thread(stopped.set, ())

    def end_with_child(process_id: int, status: int) -> None:
        # Only the first death is recorded, so that the supervisor finds the message that ended the worker.
        if not stopped.is_set() and first.acquire(blocking=False):
            tell_end(directory, process_id, status)
            children.kill()
            os._exit(DIED_STATUS)

    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    # A process that user code forks ends by a signal as usual, because a pool of `multiprocessing` waits for its end.
    os.register_at_fork(after_in_child=lambda: [signal.signal(*each) for each in before.items()])
    for each in before:
        is_left = each != signal.SIGTERM and has_terminal()  # the terminal also signals the parent
        is_left |= each == signal.SIGHUP and signal.getsignal(each) is signal.SIG_IGN  # as `nohup` sets it
        signal.signal(each, signal.SIG_IGN if is_left else stop)
    refuse_breakpoints()
    if number:
        end_with_parent(os.environ)
        children = WorkerChildren(0, [])
    else:
        children = WorkerChildren(count - 1, module_command(sys.executable, "wallaroo.worker", app))
    try:
        server = _start(app, directory, number, count)
        children.wait_ready()
        children.watch(end_with_child)
        server.show()
        if number:
            tell_ready(os.environ)
        while not stopped.wait(LOOK_S):  # a signal that the kernel gives to another thread does not end a longer wait
            pass
        # Stop the children and this process at the same time, so that all finish their calls within the same seconds.
        stopper = threading.Thread(target=children.stop)
        stopper.start()
        server.stop()
        atexit._run_exitfuncs()  # `os._exit` skips them; if they take too long, the supervisor kills the worker
        stopper.join()
    finally:
        children.stop()
    return 0


def _start(app: str, directory: Path, number: int, count: int) -> "WorkerServer":
    # gRPC reads this when it is imported. Its own work at a fork hangs or ends some of the processes of user code.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    from wallaroo.worker.host.server import WorkerServer
    from wallaroo.worker.host.service import WorkerService

    warnings.simplefilter("default")
    pipes = open_descriptors()
    program = load(app, application_args(()))
    endpoints = [f"unix:{socket_path(directory, each)}" for each in range(count)]
    cache_bytes = int(os.environ.get("WALLAROO_STATE_CACHE_BYTES", DEFAULT_CACHE_BYTES)) // count
    checks_persist = os.environ.get("WALLAROO_CHECK_PERSIST") == "1"
    max_state_bytes = int(os.environ.get("WALLAROO_MAX_STATE_BYTES", MAX_STATE_BYTES))
    calls = CallRunner(program, cache_bytes, checks_persist=checks_persist, max_state_bytes=max_state_bytes)
    theirs = open_descriptors()
    server = WorkerServer(WorkerService(program, endpoints, calls), socket_path(directory, number))
    server.start()
    ours = {each: target for each, target in open_descriptors().items() if theirs.get(each) != target}
    guard_descriptors(pipes | ours, directory)
    collect_less()
    return server


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
