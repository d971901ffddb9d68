"""A gateway or an egress as a process of its own, without the service around it: `part.py KIND CONFIG.json`.

CONFIG.json has `directory`, `request` (as the protocol has it, in JSON), `limits` and `maker` of a gateway.
"""

import json
import pkgutil
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from wallaroo_runtime.egress.sender import Sender
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.config import BACKLOG_BYTES, Limits
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.service import worker_maker, worker_splitter
from wallaroo_runtime.service._proto import service_pb2 as pb

PART = str(Path(__file__))
LOOK_S = 0.05  # tests wait for what the status says


def configured(directory: Path, request: dict[str, Any], maker: str = "") -> str:
    """Write a configuration; returns its file. Fields of `Limits` may be among those of the request."""
    limits = {field.name: request.pop(field.name) for field in fields(Limits) if field.name in request}
    path = directory / "part.json"
    path.write_text(json.dumps({"directory": str(directory), "request": request, "limits": limits, "maker": maker}))
    return str(path)


def journal_request(**given: Any) -> pb.AttachJournalRequest:
    """Return what a gateway is to do, with the defaults of tests."""
    defaults = {"fsync": "interval", "fsync_interval_ms": 50, "backlog_bytes": BACKLOG_BYTES}
    return json_format.ParseDict(defaults | given, pb.AttachJournalRequest())


def _part(kind: str, config: dict[str, Any]) -> Gateway | Sender:
    directory = Path(config["directory"])
    if kind == "egress":
        return Sender(directory, json_format.ParseDict(config["request"], pb.AttachOutboxRequest()))
    make = pkgutil.resolve_name(config["maker"]) if config["maker"] else None
    maker = (lambda generator: make(generator.target, generator.path)) if make else worker_maker
    request, limits = journal_request(**config["request"]), Limits(**({"look_s": LOOK_S} | config["limits"]))
    return Gateway(directory, request, worker_splitter, maker, limits=limits)


def main(kind: str, path: str) -> int:
    try:
        part = _part(kind, json.loads(Path(path).read_bytes()))
    except RunError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: part.stop())
    try:
        part.run()
    except (OSError, RunError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
