"""What a worker's spec becomes on the executor that a task runs on."""

from functools import cache
from pathlib import Path

from pyspark import SparkFiles

from wallaroo_runtime.worker.archive import unpack
from wallaroo_runtime.worker.spec import WorkerSpec

DIGITS = 16


@cache
def located(spec: WorkerSpec) -> WorkerSpec:
    """Return the spec as it holds on this executor; the first task that asks unpacks the worker's archive there.

    Raises:
        RunError: R655 or R657, the archive cannot be used here.
    """
    if not spec.archive:
        return spec
    root = Path(SparkFiles.getRootDirectory()).absolute()
    directory = root / f"wallaroo-{spec.archive_digest[:DIGITS]}"
    unpack(root / spec.archive, spec.archive_digest, directory, spec.interpreter())
    return spec.unpacked(directory)
