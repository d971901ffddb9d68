"""Starts a worker on an executor for Spark's tasks in Java: `python -m wallaroo_runtime.worker.executor ROOT`.

ROOT is the directory in which Spark has put the files of the application. The request comes as JSON to the standard
input: `spec`, and `stages`, serialized in base64, which the worker must run. The answer goes to the standard output:
`directory` of the worker and `target` of its first endpoint, or `diagnostics`.
"""

import base64
import json
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo.message.handshake import RELEASE
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.archive.archive import unpack
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.system.stop import SIGNALS
from wallaroo_runtime.worker.capability import check_capabilities, lacking
from wallaroo_runtime.worker.discovery import ServingWorker
from wallaroo_runtime.worker.endpoint import connect_worker
from wallaroo_runtime.worker.spec import WorkerSpec

DIGITS = 16
LOGS_OF_CLUSTER = "."  # log directory in a spec: means the directory in which the cluster keeps output of executors


def start(
    spec: WorkerSpec, stages: Iterable[pb.Stage], owner: ProcessId | None = None, *, releases: bool = False
) -> ServingWorker:
    """Start a worker, unless it runs, and check that it can run some stages.

    Args:
        spec: Spec of the worker on this machine.
        owner: Process whose end is also the end of the worker; by default the Java virtual machine that started this
            process.
        releases: Whether calls of the worker stay open, and release outputs before they end.

    Raises:
        RunError: The error with which the worker does not start; W416 if it lacks a capability.
    """
    endpoints = connect_worker(spec, owner, retry=True)
    endpoints.close()
    offered = endpoints.init.capabilities
    if releases and RELEASE not in offered:
        raise RunError.of("W416", WORKER, worker=spec.name, lack=lacking(f'"{RELEASE}"', "real-time mode"))
    for stage in stages:
        check_capabilities(spec, stage, offered)
    return endpoints.connection


def request_of(spec: WorkerSpec, stages: Iterable[pb.Stage]) -> dict[str, Any]:
    """Return the request that lets `main` start a worker, as a JSON object."""
    texts = [base64.b64encode(stage.SerializeToString()).decode() for stage in stages]
    return {"python": sys.executable, "spec": spec.to_json(), "stages": texts}


def located(spec: WorkerSpec, root: Path) -> WorkerSpec:
    """Return the spec with the paths of this executor. The first call unpacks the worker's archive here.

    Args:
        root: Directory in which Spark has put the files of the application.

    Raises:
        RunError: R655 if the archive cannot be used here.
    """
    if spec.log_directory == LOGS_OF_CLUSTER:
        of_yarn = os.environ.get("LOG_DIRS", "").partition(",")[0] if "CONTAINER_ID" in os.environ else ""
        spec = replace(spec, log_directory=of_yarn or str(Path.cwd()))
    if not spec.archive:
        return spec
    root = root.absolute()
    directory = root / f"wallaroo-{spec.archive_digest[:DIGITS]}"
    unpack(root / spec.archive, spec.archive_digest, directory, spec.interpreter())
    return spec.unpacked(directory)


def main() -> None:
    """Start the worker of the request on the standard input, and print the answer."""
    for number in SIGNALS:  # Java may ignore these signals, which the worker would inherit
        signal.signal(number, signal.SIG_DFL)
    request = json.load(sys.stdin)
    stages = [pb.Stage.FromString(base64.b64decode(text)) for text in request["stages"]]
    try:
        spec = located(WorkerSpec.from_json(request["spec"]), Path(sys.argv[1]))
        connection = start(spec, stages)
    except RunError as error:
        print(json.dumps({"diagnostics": [finding.to_json() for finding in error.diagnostics]}))
        return
    print(json.dumps({"directory": str(connection.directory), "target": connection.target}))


if __name__ == "__main__":
    main()
