"""Adapts a worker's spec to the machine where tasks run."""

import os
from dataclasses import replace
from pathlib import Path

from wallaroo_runtime.archive.archive import unpack
from wallaroo_runtime.worker.spec import WorkerSpec

DIGITS = 16
LOGS_OF_CLUSTER = "."  # log directory in a spec: means the directory in which the cluster keeps output of executors


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
