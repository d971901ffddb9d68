"""Starts and stops workers on the executors, outside of any query."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from threading import Timer

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wallaroo.worker.host import trace
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import carried, translated
from wallaroo_runtime.spark.machine.settings import is_local
from wallaroo_runtime.spark.options import QueryOptions
from wallaroo_runtime.spark.task.executor import LOGS_OF_CLUSTER, located, ship
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.channel import WorkerChannel, close_all
from wallaroo_runtime.worker.discovery import ensure_worker, stop_worker
from wallaroo_runtime.worker.spec import WorkerSpec

STOP_S = 15.0
_log = logging.getLogger(__name__)


def worker_specs(session: SparkSession, topology: Topology, options: QueryOptions) -> dict[str, WorkerSpec]:
    """Return how the workers of a topology are found in this Spark application, which ships their archive."""
    archive = options.archive
    shipped = ship(session, archive, options.logs) if archive is not None else ""
    return {
        worker.name: replace(
            WorkerSpec.of(topology, worker),
            cache_bytes=options.cache_bytes,
            run=session.sparkContext.applicationId,
            processes=int(session.conf.get("spark.executor.cores", "0") or 0),
            log_directory=str(options.logs) if is_local(session.sparkContext.master) else LOGS_OF_CLUSTER,
            archive=shipped,
            archive_digest=archive.digest if archive else "",
            python=options.python,
        )
        for worker in topology.workers
    }


def start_workers(session: SparkSession, specs: Mapping[str, WorkerSpec]) -> dict[str, str]:
    """Start the workers where tasks run, so that the first message does not wait for them.

    Returns:
        Name of a worker to the gRPC target of its first endpoint on one executor; locally there is only one.

    Raises:
        RunError: Why a worker does not start or must not be used.
    """
    chosen = tuple(specs.values())

    def start() -> Iterator[tuple[str, str]]:
        for spec in map(located, chosen):
            connection = ensure_worker(spec, retry=True)
            WorkerChannel(spec).endpoints()
            yield spec.name, connection.target

    try:
        return dict(_on_executors(session, start))
    except PySparkException as error:
        raise translated(causes_of(error)) from error


def stop_workers(session: SparkSession, specs: Mapping[str, WorkerSpec]) -> None:
    """Stop the workers where tasks run; an executor that is not reached within seconds ends them when it ends."""
    chosen = tuple(specs.values())

    def stop() -> Iterator[tuple[str, str]]:
        close_all()
        trace.flush()
        for spec in map(located, chosen):
            if stop_worker(spec):
                yield spec.name, ""

    late = Timer(STOP_S, session.sparkContext.cancelAllJobs)  # without executors Spark would wait for ever
    late.start()
    try:
        _on_executors(session, stop)
    except (PySparkException, Py4JJavaError):
        _log.debug("Spark or its executors ended before the workers were asked to stop", exc_info=True)
    finally:
        late.cancel()


def _on_executors(session: SparkSession, function: Callable[[], Iterator[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Run a function in one task per core, in the same processes in which the query's tasks run later."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        with carried():
            rows = [dict(zip(("name", "target"), row, strict=True)) for row in function()]
        yield pa.RecordBatch.from_pylist(rows, schema=pa.schema([("name", pa.string()), ("target", pa.string())]))

    count = session.sparkContext.defaultParallelism
    rows = session.range(count, numPartitions=count).mapInArrow(run, "name STRING, target STRING").collect()
    return [(row["name"], row["target"]) for row in rows]
