"""Opens the states of a checkpoint for people: Spark reads them, and workers of the application show them."""

import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo_runtime.archive.archive import ARCHIVE_PLACEHOLDER
from wallaroo_runtime.checkpoint.directory import SPARK
from wallaroo_runtime.checkpoint.manifest import (
    REALTIME,
    Directory,
    LocalDirectory,
    manifest_in,
    mode_of,
    read_manifest,
)
from wallaroo_runtime.checkpoint.spark_folder import plan_of
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.state_query import StateQuery, state_named, states_of
from wallaroo_runtime.spark.java import check_java
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

RAW = "give --raw, which shows the bytes of states and starts no worker"


def check_state(place: Path, name: str) -> None:
    """Refuse the name of a state that the files of a checkpoint do not know; Spark takes seconds to say it.

    Raises:
        RunError: R616, R698, there is no checkpoint; R720, no such state.
    """
    state_named(states_of(plan_of(read_manifest(place))), name)


@contextmanager
def open_states(place: Path | str, conf: Mapping[str, str], *, raw: bool = False) -> Iterator[StateQuery]:
    """Give the states of a checkpoint; Spark and the workers that were asked end afterwards.

    A run may go on meanwhile: what is read is what it has committed.

    Args:
        place: The directory, or a URL.
        conf: Settings of Spark, e.g. for the file system of a URL.
        raw: Whether states are shown as their bytes; no worker is started then.

    Raises:
        RunError: R616, R698, there is no checkpoint; R602, no Java; R771, its states cannot be shown; R684.
    """
    # Only Spark gets to a URL; a session for real-time mode reads both.
    mode = mode_of(read_manifest(place)) if isinstance(place, Path) else REALTIME
    check_java()
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.checkpoint.url import check_answer, is_remote
    from wallaroo_runtime.spark.hadoop import HadoopDirectory
    from wallaroo_runtime.spark.realtime.settings import STATE_FORMAT, STATES_WITH_IDS
    from wallaroo_runtime.spark.session import create_session, stop_session
    from wallaroo_runtime.spark.settings import REMOTE_FILES
    from wallaroo_runtime.spark.state_reader import SparkLogs

    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wallaroo-state-")))
        settings = ({STATE_FORMAT: STATES_WITH_IDS} if mode == REALTIME else {}) | dict(conf)
        if isinstance(place, str):
            check_answer(place)
            settings = (REMOTE_FILES if is_remote(place) else {}) | settings
        session = create_session(
            "state", master="local[*]", shuffle_partitions=1, directory=work / "logs", settings=settings
        )
        stack.callback(stop_session, session)
        directory: Directory = HadoopDirectory(session, place) if isinstance(place, str) else LocalDirectory(place)
        manifest = manifest_in(directory)
        plan = plan_of(manifest)
        logs = SparkLogs(session, directory, plan, manifest.get("spark", SPARK))
        topology = load_document(manifest["topology"])
        showers = None if raw else Showers(topology, work / "workers", stack)
        yield StateQuery(plan, logs, showers.of if showers else None)


class Showers:
    """Starts workers of an application that show its states.

    Args:
        logs: Directory for what they print.
    """

    def __init__(self, topology: Topology, logs: Path, stack: ExitStack) -> None:
        self._topology, self._logs, self._stack = topology, logs, stack
        self._started: dict[str, Any] = {}
        self._run = f"state-{os.getpid()}-{uuid.uuid4().hex}"

    def of(self, name: str) -> Any:
        """Return what asks a worker; it is started when it is asked for first.

        Raises:
            RunError: R771, its program is in an archive; what its start reports.
        """
        if name not in self._started:
            self._started[name] = self._start(name)
        return self._started[name]

    def _start(self, name: str) -> Any:
        from wallaroo_runtime.worker.discovery import ensure_worker, stop_worker
        from wallaroo_runtime.worker.show import WorkerShower
        from wallaroo_runtime.worker.spec import WorkerSpec

        worker = self._topology.worker(name)
        spec = WorkerSpec.of(self._topology, worker)
        if any(ARCHIVE_PLACEHOLDER in text for text in (*spec.command, spec.directory)):
            reason = f'the program of worker "{name}" is in an archive'
            raise RunError.of("R771", path=self._topology.name, reason=reason, fix=RAW)
        self._logs.mkdir(exist_ok=True)
        spec = replace(spec, run=self._run, processes=1, log_directory=str(self._logs))
        self._stack.callback(stop_worker, spec)
        shower = WorkerShower(ensure_worker(spec).target, name)
        self._stack.callback(shower.close)
        return shower
