"""The Python worker with one fault, as processes: `python wrong_worker.py FAULT APP` starts it."""

import contextlib
import functools
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
if sys.argv[1:2] == ["no-kill-points"]:
    os.environ.pop("WALLAROO_FAULT", None)

from conformance.behaviour import Wrap, behaving, replaced  # noqa: E402
from conformance.local import WrongService  # noqa: E402
from wallaroo.emit import emit  # noqa: E402
from wallaroo.worker import __main__ as start  # noqa: E402
from wallaroo.worker.host import server  # noqa: E402
from wallaroo.worker.host.service import WorkerService  # noqa: E402


def nothing(original: Any) -> Any:
    return lambda *given: None


def another_name(original: Any) -> Any:
    def emit_to_file(app: str, file: str) -> None:
        original(app, file)
        path = Path(file)
        result = json.loads(path.read_text(encoding="utf-8"))
        if "topology" in result:
            result["topology"]["name"] += " "
            path.write_text(json.dumps(result), encoding="utf-8")

    return emit_to_file


def deaf(original: Any) -> Any:
    return lambda number, _: original(number, signal.SIG_IGN)


def not_serving(original: Any) -> Any:
    return lambda self, service, _: original(self, service, server.health_pb2.HealthCheckResponse.NOT_SERVING)


PROCESS_FAULTS: dict[str, Sequence[tuple[Any, str, Wrap]]] = {
    "emits-another-name": [(start, "emit_to_file", another_name)],
    "silent-setup": [(start, "write_result", nothing), (emit, "write_result", nothing)],
    "friendly-by-hand": [(start, "USAGE_STATUS", lambda _: 0)],
    "unhealthy": [(server.health.HealthServicer, "set", not_serving)],
    "ignores-sigterm": [(signal, "signal", deaf)],
    "leaves-orphan": [(start, "end_with_parent", nothing)],
    "no-ended-json": [(start, "tell_end", nothing)],
    "no-kill-points": [],
}


def main(fault: str, *words: str) -> int:
    """Run the worker's own `main` with the fault; the last word of its command is the program."""
    app = words[-1]
    command = [sys.executable, os.path.abspath(__file__), fault, app]
    with contextlib.ExitStack() as stack:
        stack.enter_context(behaving(fault))
        wrong = [
            (start, "module_command", lambda _: lambda *given: command),
            (server, "WorkerServer", _wrong_server(fault)),
        ]
        for each in (*wrong, *PROCESS_FAULTS.get(fault, ())):
            stack.enter_context(replaced(*each))
        return start.main([app])


def _wrong_server(fault: str) -> Wrap:
    return lambda original: functools.partial(_served, original, fault)


def _served(original: Any, fault: str, service: WorkerService, socket: Path) -> Any:
    return original(WrongService(service, fault), socket)


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    for out in (sys.stdout, sys.stderr):
        out.flush()
    os._exit(status)
