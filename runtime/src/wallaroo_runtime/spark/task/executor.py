"""What a worker's spec becomes on the executor that a task runs on."""

import os
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from wallaroo_runtime.archive.archive import Archive, file_digest, unpack
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.worker.owner_process import find_owner
from wallaroo_runtime.worker.spec import WorkerSpec

DIGITS = 16
SHIPPED = "application{}.archive"  # a name that Spark does not unpack; it takes a name once while it runs
LOCAL = "driver"
LOGS_OF_CLUSTER = "."  # as a spec's log directory: where the cluster keeps what its executors print


def ship(session: SparkSession, archive: Archive, directory: Path) -> str:
    """Give every executor a copy of an archive; it stays in a directory of the driver while Spark runs.

    Returns:
        The name of the copy.

    Raises:
        RunError: R655, it was changed since it was read.
    """
    name = SHIPPED.format(f"-{archive.digest[:DIGITS]}")
    used = {file.rpartition("/")[2] for file in session.sparkContext.listFiles}
    for old in directory.glob(SHIPPED.format("*")):
        if old.name not in used:
            old.unlink()
    temporary, copy = directory / f"{name}.new", directory / name
    shutil.copyfile(archive.path, temporary)
    actual = file_digest(temporary)
    if actual != archive.digest:
        raise RunError.of("R655", path=archive.path, reason="it was changed while the application started")
    temporary.replace(copy)
    session.sparkContext.addFile(str(copy))
    return name


@cache
def executor_name() -> str:
    """Return the name of the executor that this task runs on: its number for Spark, and its machine.

    Spark gives both to every executor's process, whatever the cluster; on a local master it is the driver.
    """
    arguments = Path(f"/proc/{find_owner().pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return name_of(arguments)


def name_of(arguments: list[str]) -> str:
    """Return the name of an executor whose process was started with these arguments.

    Example:
        >>> name_of(["java", "--executor-id", "3", "--hostname", "10.0.0.4"]), name_of(["java"])
        ('3 on 10.0.0.4', 'driver')
    """
    found = dict(zip(arguments, arguments[1:], strict=False))
    number, machine = found.get("--executor-id"), found.get("--hostname")
    return f"{number} on {machine}" if number and machine else LOCAL


@cache
def located(spec: WorkerSpec) -> WorkerSpec:
    """Return the spec as it holds on this executor; the first task that asks unpacks the worker's archive there.

    Raises:
        RunError: R655, the archive cannot be used here.
    """
    if spec.log_directory == LOGS_OF_CLUSTER:
        of_yarn = os.environ.get("LOG_DIRS", "").partition(",")[0] if "CONTAINER_ID" in os.environ else ""
        spec = replace(spec, log_directory=of_yarn or str(Path.cwd()))
    if not spec.archive:
        return spec
    root = Path(SparkFiles.getRootDirectory()).absolute()
    directory = root / f"wallaroo-{spec.archive_digest[:DIGITS]}"
    unpack(root / spec.archive, spec.archive_digest, directory, spec.interpreter())
    return spec.unpacked(directory)
