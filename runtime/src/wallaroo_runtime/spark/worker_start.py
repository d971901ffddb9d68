"""Starts the workers of a query where its tasks run, and stops them."""

import json
import logging
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Timer
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkFiles
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.archive.archive import Archive, file_digest
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import translated
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.machine.settings import is_local
from wallaroo_runtime.spark.options import QueryOptions
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.discovery import stop_worker
from wallaroo_runtime.worker.executor import DIGITS, LOGS_OF_CLUSTER, located, request_of, start
from wallaroo_runtime.worker.spec import WorkerSpec

STOP_S = 15.0
LANGUAGES = ("go", "python")  # languages of our own SDKs
SHIPPED = "application{}.archive"  # with this suffix Spark does not unpack the file; each file needs a new name
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """The data by which tasks of a query find a worker, or start it.

    Attributes:
        spec: Describes the worker.
        request: The request with which a task starts the worker if it does not run.
        directory: Directory in which its supervisor listens; empty if tasks start the worker.
    """

    spec: WorkerSpec
    request: Mapping[str, Any]
    directory: str = ""


@dataclass(slots=True)
class Workers:
    """All workers of a query, which run where its tasks run: on this machine or on the executors.

    Attributes:
        session: The session that runs the tasks.
        owner: The Java virtual machine of the driver if it runs the tasks, else None.
        running: The workers by name.
        targets: gRPC target of one process of each worker, by the worker's name.
    """

    session: SparkSession
    owner: ProcessId | None
    running: dict[str, RunningWorker] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)

    def stop(self) -> None:
        """Stop all workers. An executor that does not answer within seconds ends its workers when it ends itself."""
        if self.owner is not None:
            for worker in self.running.values():
                stop_worker(worker.spec, self.owner)
            return
        late = Timer(STOP_S, self.session.sparkContext.cancelAllJobs)  # without executors Spark would wait forever
        late.start()
        try:
            _operators(self.session).stop(self.session._jsparkSession, self.session.sparkContext.defaultParallelism)
        except (PySparkException, Py4JJavaError):
            _log.debug("Spark or its executors ended before the workers were asked to stop", exc_info=True)
        finally:
            late.cancel()


def _operators(session: SparkSession) -> Any:
    return java_class(session, "microbatch.WorkerTasks")


def ship(session: SparkSession, archive: Archive, directory: Path) -> str:
    """Give every executor a copy of an archive, which contains the programs of the workers.

    While Spark runs, the driver keeps the copy in `directory`.

    Returns:
        The name of the copy.

    Raises:
        RunError: R655 if the archive was changed since it was read.
    """
    name = SHIPPED.format(f"-{archive.digest[:DIGITS]}")
    used = {file.rpartition("/")[2] for file in session.sparkContext.listFiles}
    for old in directory.glob(SHIPPED.format("*")):
        if old.name not in used:
            old.unlink()
    temporary, copy = directory / f"{name}.new", directory / name
    try:
        shutil.copyfile(archive.path, temporary)
        if file_digest(temporary) != archive.digest:
            raise RunError.of("R655", path=archive.path, reason="it was changed while the application started")
        temporary.replace(copy)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(copy)) from error  # not the archive's path: its disk has room
    finally:
        temporary.unlink(missing_ok=True)
    session.sparkContext.addFile(str(copy))
    return name


def worker_specs(session: SparkSession, topology: Topology, options: QueryOptions) -> dict[str, WorkerSpec]:
    """Return for each worker the description by which tasks start it. Send the archive, if any, to the executors."""
    archive = options.archive
    shipped = ship(session, archive, options.logs) if archive is not None else ""
    specs = local_specs(topology, options.logs, options.cache_bytes, options.python)
    if not is_local(session.sparkContext.master):
        run, cores = session.sparkContext.applicationId, int(session.conf.get("spark.executor.cores", "0") or 0)
        own: dict[str, Any] = {"run": run, "processes": cores, "log_directory": LOGS_OF_CLUSTER}
        specs = {name: replace(spec, **own) for name, spec in specs.items()}
    digest = archive.digest if archive else ""
    return {name: replace(spec, archive=shipped, archive_digest=digest) for name, spec in specs.items()}


def local_specs(topology: Topology, logs: Path, cache_bytes: int, python: str) -> dict[str, WorkerSpec]:
    """Return for each worker the description by which it is started on this machine, for a local Spark.

    Args:
        logs: Directory to which the workers write.
        cache_bytes: Bytes of states that each worker may keep.
        python: Interpreter of Python workers; empty for the one of this process.
    """
    own: dict[str, Any] = {"cache_bytes": cache_bytes, "log_directory": str(logs), "python": python}
    return {worker.name: replace(WorkerSpec.of(topology, worker), **own) for worker in topology.workers}


def start_early(specs: Mapping[str, WorkerSpec], plan: Plan, java: int) -> None:
    """Start the workers of a local Spark while Java starts. `start_workers` later finds them running.

    Args:
        specs: The result of `local_specs`.
        java: Id of Java's process.

    Raises:
        RunError: See `start_workers`. The workers end when Java ends.
    """
    owner = ProcessId.of(java)
    for name, stages in _stages_by_worker(plan).items():
        start(specs[name], stages, owner)


def start_workers(
    session: SparkSession, plan: Plan, topology: Topology, options: QueryOptions, *, is_realtime: bool = False
) -> Workers:
    """Start the workers where tasks run, so that the first message does not wait for them.

    Args:
        is_realtime: Whether the query runs in the driver, with calls that stay open.

    Raises:
        RunError: A worker does not start, or does not fit the application.
    """
    specs = worker_specs(session, topology, options)
    stages = _stages_by_worker(plan)
    if not is_realtime and not is_local(session.sparkContext.master):
        workers = Workers(session, None, running_in_tasks(session, plan, specs))
        workers.targets |= _started(session, workers.running)
        return workers
    pid = int(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    workers = Workers(session, ProcessId.of(pid))
    try:
        for name in stages:
            spec = located(specs[name], Path(SparkFiles.getRootDirectory()))
            workers.running[name] = RunningWorker(spec, {})  # recorded before it starts, so that `stop` always stops it
            connection = start(spec, stages[name], workers.owner, releases=is_realtime)
            request = _request(session, spec, stages[name])
            workers.running[name] = RunningWorker(spec, request, str(connection.directory))
            workers.targets[name] = connection.target
    except BaseException:
        workers.stop()
        raise
    return workers


def running_in_tasks(session: SparkSession, plan: Plan, specs: Mapping[str, WorkerSpec]) -> dict[str, RunningWorker]:
    """Return the workers of a plan, not started yet. On each executor, the first task that needs a worker starts it."""
    stages = _stages_by_worker(plan)
    return {name: RunningWorker(specs[name], _request(session, specs[name], stages[name])) for name in stages}


def start_foreign(session: SparkSession, topology: Topology, workers: Mapping[str, RunningWorker]) -> None:
    """Start the workers in languages without our SDK, to find missing capabilities before the query starts.

    Raises:
        RunError: W416 if a worker lacks a capability that a stage needs, or the reason why a worker does not start.
    """
    foreign = {name: each for name, each in workers.items() if topology.worker(name).language not in LANGUAGES}
    if foreign:
        _started(session, foreign)


def _stages_by_worker(plan: Plan) -> dict[str, list[pb.Stage]]:
    names = sorted({stage.worker for stage in plan.stages})
    return {name: [stage_message(stage) for stage in plan.stages if stage.worker == name] for name in names}


def _request(session: SparkSession, spec: WorkerSpec, stages: list[Any]) -> dict[str, Any]:
    python = sys.executable if is_local(session.sparkContext.master) else str(session.sparkContext.pythonExec)
    return {**request_of(spec, stages), "python": python}


def _started(session: SparkSession, workers: Mapping[str, RunningWorker]) -> dict[str, str]:
    """Start the workers on the executors, by one Spark task for each core. Return the workers' targets."""
    listed = json.dumps(
        [{"worker": name, "worker_directory": "", "start": worker.request} for name, worker in workers.items()]
    )
    count = session.sparkContext.defaultParallelism
    try:
        addresses = _operators(session).start(session._jsparkSession, listed, count)
    except (PySparkException, Py4JJavaError) as error:
        raise translated(causes_of(error)) from error
    return {name: str(addresses.get(name)) for name in workers}
