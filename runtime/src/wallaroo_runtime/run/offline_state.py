"""Opens the states of a checkpoint for commands: Spark reads the states, and workers turn them into text."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo_runtime.archive.archive import Archive, check_platform, read_archive
from wallaroo_runtime.archive.placeholder import ARCHIVE_PLACEHOLDER
from wallaroo_runtime.checkpoint.manifest import Manifest, manifest_in, read_manifest
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.java import check_java
from wallaroo_runtime.spark.state_store.state_query import StateQuery, state_named, states_of
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

if TYPE_CHECKING:
    from wallaroo_runtime.worker.idempotent_call import WorkerShower

RAW = "--raw, which shows the bytes of states and starts no worker"


def check_state(checkpoint: Path, name: str, archive: Archive | None = None, *, raw: bool = True) -> None:
    """Refuse a command for a state that cannot be shown. This needs only files of the checkpoint, and no Spark.

    Args:
        name: Name of the state.
        archive: Archive with the workers that must show the state.
        raw: Whether states are shown as their bytes.

    Raises:
        RunError: R616 or R698 if there is no usable checkpoint; R720 if there is no such state; R771 if no worker can
            show it.
    """
    manifest = read_manifest(checkpoint)
    state = state_named(states_of(manifest.plan()), name)
    if not raw:
        check_archive(manifest, archive)
        _check_program(manifest.load(), state.stage.worker, archive)


def read_workers(path: str) -> Archive | None:
    """Return the archive of workers at a path; None if the path is empty.

    Raises:
        RunError: R655 if the archive is not usable, or has nothing for this machine.
    """
    if not path:
        return None
    archive = read_archive(Path(path).absolute())
    check_platform(archive.path, archive.manifest)
    return archive


def check_archive(manifest: Manifest, archive: Archive | None) -> None:
    """Refuse an archive whose workers could not read the states of a checkpoint.

    Args:
        manifest: Manifest of the checkpoint.

    Raises:
        RunError: R771 if the archive is of another application or version.
    """
    if archive is None:
        return
    name = manifest.name
    topology = load_document(json.loads(archive.topology))
    fix = f"give the archive that was run last, or {RAW}"
    if topology.name != name:
        reason = f'{archive.path} is the archive of "{topology.name}"'
        raise RunError.of("R771", path=name, reason=reason, fix=fix)
    if interface_hash(topology) != interface_hash(manifest.load()):
        reason = f"{archive.path} is another version of the application than that of the last run"
        raise RunError.of("R771", path=name, reason=reason, fix=fix)


@contextmanager
def open_states(
    checkpoint: Path | str, conf: Mapping[str, str], *, raw: bool = False, archive: Archive | None = None
) -> Iterator[StateQuery]:
    """Open the states of a checkpoint during the block. Spark and the started workers end with the block.

    A run of the checkpoint may go on meanwhile, and only the states that it has committed are read.

    Args:
        checkpoint: The directory, or a URL.
        conf: Settings of Spark, e.g. for the file system of a URL.
        raw: Whether states are shown as their bytes; no worker is started then.
        archive: Archive with the workers; None if they are on this machine.

    Raises:
        RunError: R616 or R698 if there is no usable checkpoint; R684 if its file system does not answer; R602 if there
            is no Java; R771 if its states cannot be shown.
    """
    if isinstance(checkpoint, Path):
        read_manifest(checkpoint)
    check_java()
    # Imported late: pyspark takes a second to import.
    from wallaroo_runtime.checkpoint.url import check_answer, is_remote
    from wallaroo_runtime.spark.machine.hadoop import directory_at
    from wallaroo_runtime.spark.machine.settings import REMOTE_FILES
    from wallaroo_runtime.spark.session import create_session, stop_session
    from wallaroo_runtime.spark.state_store.reader import StateReader

    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wallaroo-state-")))
        settings = dict(conf)
        if isinstance(checkpoint, str):
            check_answer(checkpoint)
            settings = (REMOTE_FILES if is_remote(checkpoint) else {}) | settings
        session = create_session(
            "state", master="local[*]", shuffle_partitions=1, directory=work / "logs", settings=settings
        )
        stack.callback(stop_session, session)
        directory = directory_at(session, str(checkpoint))
        manifest = manifest_in(directory)
        plan = manifest.plan()
        logs = StateReader(session, directory, plan, manifest.spark)
        check_archive(manifest, archive)
        yield StateQuery(
            plan, logs, None if raw else shower_of(manifest.load(), archive, work / "workers", stack), checkpoint
        )


def shower_of(
    topology: Topology, archive: Archive | None, directory: Path, stack: ExitStack
) -> Callable[[str], "WorkerShower"]:
    """Return a function that starts the named worker, and returns a client to ask it for readable states.

    Args:
        archive: Archive with the workers; None if they are on this machine.
        directory: Directory for the output of the workers, and for the unpacked archive.
        stack: Ends the workers.

    Raises:
        RunError: The function raises R771 if the worker's program is in an archive that was not given, and the error
            with which the worker does not start.
    """
    from wallaroo_runtime.peer.hosted_workers import HostedWorkers
    from wallaroo_runtime.worker.idempotent_call import WorkerShower

    topology = load_document(json.loads(archive.topology)) if archive else topology
    workers = HostedWorkers(topology, directory, archive)
    stack.callback(workers.close)

    def shower(name: str) -> WorkerShower:
        _check_program(topology, name, archive)
        made = WorkerShower(workers.target(name), name)
        stack.callback(made.close)
        return made

    return cache(shower)


def _check_program(topology: Topology, name: str, archive: Archive | None) -> None:
    """Refuse a worker whose program is in an archive that was not given (R771)."""
    worker = topology.worker(name)
    if archive is None and any(ARCHIVE_PLACEHOLDER in text for text in (*worker.command, worker.directory)):
        reason = f'the program of worker "{name}" is in an archive'
        fix = f"give --archive FILE, the archive that was run last, or {RAW}"
        raise RunError.of("R771", path=topology.name, reason=reason, fix=fix)
