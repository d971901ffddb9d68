"""Gives a checkpoint other numbers of shuffle partitions and buckets, while no driver runs.

All is made next to the old files; that the application's record is replaced decides, so a process that is killed leaves
either the checkpoint as it was or the new one.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.checkpoint.directory import Place
from wallaroo_runtime.checkpoint.manifest import Manifest, find_manifest, manifest_in, read_manifest, write_manifest
from wallaroo_runtime.checkpoint.spark_folder import WORK, is_outdated, next_name, remove_rest
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.spark.machine.check import check_machine
from wallaroo_runtime.storage.spark_log import last_commit, pending_batch

if TYPE_CHECKING:
    from wallaroo_runtime.peer.remote import RemoteOptions
    from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory


@dataclass(frozen=True, slots=True)
class Rescaled:
    """What was done.

    Attributes:
        partitions: Shuffle partitions before and now.
        buckets: Buckets of each partition before and now.
        keys: Keys with state that were moved; 0 when nothing had to be.
        state_bytes: Bytes of their states.
    """

    partitions: tuple[int, int]
    buckets: tuple[int, int]
    keys: int
    state_bytes: int


def rescale(path: Path, partitions: int | None, buckets: int | None) -> Rescaled:
    """Give a checkpoint other numbers of partitions and buckets.

    Args:
        path: The checkpoint directory.
        partitions: Shuffle partitions; None: as many as it has, as a checkpoint of real-time mode must.
        buckets: Buckets of each partition; None: as many as it has.

    Raises:
        RunError: R610, a driver runs; R663, a micro-batch is pending, or it cannot be rescaled; R664, it did not
            work. The checkpoint is as before.
    """
    manifest = read_manifest(path)
    if manifest.is_realtime:
        return _rescale_realtime(path, manifest, partitions, buckets)
    check_machine()
    place = Place.take(path)
    try:
        return _rescale(path, manifest, _wanted(manifest, partitions, buckets), path)
    finally:
        place.release()


def _rescale_realtime(path: Path, manifest: Manifest, partitions: int | None, buckets: int | None) -> Rescaled:
    """Rescale a checkpoint of real-time mode, whose state is laid out as a conversion does it."""
    if manifest.services:
        raise _far(path, "its journal or its outbox is at a remote service")
    if partitions is not None:
        reason = "it is of real-time mode, which has one partition"
        command = f"wallaroo state convert {path} --to microbatch --partitions {partitions}"
        fix = f"give --buckets alone, or take it to micro-batches: `{command}`"
        raise RunError.of("R663", USAGE, path=path, reason=reason, fix=fix)
    # Late: gRPC takes half a second to import.
    from wallaroo_runtime.maintenance.convert import rebucket

    done = rebucket(path, buckets or manifest.buckets_per_partition)
    return Rescaled(done.partitions, done.buckets, done.keys, done.state_bytes)


def _far(place: object, what: str) -> RunError:
    """Return an R663: some of a checkpoint of real-time mode is not on this machine."""
    reason = f"it is of real-time mode, and {what}"
    return RunError.of("R663", USAGE, path=place, reason=reason, fix="run it with the numbers that it has")


def rescale_at(
    url: str, partitions: int | None, buckets: int | None, remote: "RemoteOptions", conf: Mapping[str, str]
) -> Rescaled:
    """Give a checkpoint at a URL other numbers; it is done on a copy, in the directory for temporary files.

    Args:
        url: The checkpoint, wherever Hadoop reaches.
        partitions: As for `rescale`.
        buckets: As for `rescale`.
        remote: Its gateways, which from now on serve no driver that is there already, and its egress.
        conf: Settings of Spark, e.g. for the file system.

    Raises:
        RunError: As `rescale`; R608 or R615, `remote` lacks a service; R642 or R643, a gateway cannot be asked or is
            another; R644, a driver was started meanwhile; R684, the file system says no.
    """
    # Late: gRPC and pyspark take a second to import.
    from wallaroo_runtime.checkpoint.url import check_answer, check_services, is_remote
    from wallaroo_runtime.peer.remote import check_known
    from wallaroo_runtime.peer.takeover import Hold
    from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory
    from wallaroo_runtime.spark.machine.settings import REMOTE_FILES
    from wallaroo_runtime.spark.session import create_session, stop_session

    check_services(url, remote)
    check_machine()
    check_answer(url)
    settings = (REMOTE_FILES if is_remote(url) else {}) | dict(conf)
    with TemporaryDirectory(prefix="wallaroo-rescale-") as folder:
        work = Path(folder)
        session = create_session(
            "rescale", master="local[*]", shuffle_partitions=1, directory=work / "logs", settings=settings
        )
        try:
            directory = HadoopDirectory(session, url)
            manifest = manifest_in(directory)
            if manifest.is_realtime:
                raise _far(url, "at a URL")
            check_known(directory, manifest.services, remote)
            hold = Hold(remote, manifest.name, manifest.id, manifest.services)
            hold.take_gateways()
            wanted = _wanted(manifest, partitions, buckets)
            return _rescale_copy(directory, work, manifest, wanted, session, hold.check)
        finally:
            stop_session(session)


def _rescale_copy(
    directory: "HadoopDirectory",
    work: Path,
    manifest: Manifest,
    wanted: Manifest,
    session: Any,
    check: Callable[[], None],
) -> Rescaled:
    """Fetch, rescale, put back under another name; `check` raises when the checkpoint is in use meanwhile."""
    from wallaroo_runtime.spark.state_store.rescale import relocate

    spark = manifest.spark
    directory.fetch(spark, work / spark)
    relocate(work / spark, f"file:{work / spark}")
    done = _rescale(work, manifest, wanted, directory, session)
    if (now := find_manifest(LocalDirectory(work))) is None:
        return done
    used = now.spark
    if used != spark:
        relocate(work / used, f"{directory}/{used}")
        directory.put(work / used, used)
    check()
    reach("rescale.before_record")
    write_manifest(directory, now)
    reach("rescale.after_record")
    for name in directory.names(""):
        if is_outdated(name, used):
            directory.remove(name)
    return done


def _rescale(
    path: Path,
    manifest: Manifest,
    now: Manifest,
    place: object,
    session: Any = None,
) -> Rescaled:
    """Rescale what is in a directory of this machine.

    Args:
        path: The directory.
        manifest: Of the checkpoint.
        now: As it shall be.
        place: Where the user knows the checkpoint to be.
        session: One that runs; None: it is started and stopped.
    """
    before, after = manifest.plan(), now.plan()
    spark = manifest.spark
    remove_rest(path, spark)
    keys = size = 0
    if before.bucket_ids != after.bucket_ids:
        if _has_state(path / spark, before, place):
            now = replace(now, spark=next_name(spark))
            keys, size = _move(path, spark, now.spark, before, after, session)
            now = replace(now, rescaled=_added_batches(manifest, path / spark, path / now.spark))
        reach("rescale.before_switch")
        write_manifest(LocalDirectory(path), now)
        reach("rescale.after_switch")
        remove_rest(path, now.spark)
    partitions, buckets = zip(manifest.numbers, now.numbers, strict=True)
    return Rescaled(partitions, buckets, keys, size)


def _added_batches(manifest: Manifest, old: Path, new: Path) -> tuple[int, int]:
    """Return the last micro-batch that was published, and the last one of the new checkpoint."""
    before, after = manifest.rescaled
    last = last_commit(old)
    return before if last == after else last, last_commit(new)


def _wanted(manifest: Manifest, partitions: int | None, buckets: int | None) -> Manifest:
    before, before_buckets = manifest.numbers
    return replace(manifest, shuffle_partitions=partitions or before, buckets_per_partition=buckets or before_buckets)


def _has_state(spark: Path, plan: Plan, place: object) -> bool:
    """Say whether Spark has state that must be moved; checks that it can be."""
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.state_store.rescale import state_variables

    batch = pending_batch(spark)
    if batch is not None:
        raise RunError.of(
            "R663",
            path=place,
            reason=f"micro-batch {batch} is planned and not committed",
            fix="run the application once more as before, with --stop-when-idle 5, and rescale then",
        )
    operators = state_variables(spark)
    found = {name for variables in operators for name in variables if name.startswith("log_")}
    planned = {f"log_{stage.id}" for level in plan.levels[1:] for stage in level if stage.has_state}
    if operators and (len(operators) != len(plan.levels) - 1 or found - planned):
        reason = "its last run has changed the application and has not processed anything since"
        raise RunError.of(
            "R663", USAGE, path=place, reason=reason, fix="run it until a message is processed, then again"
        )
    return bool(operators)


def _move(path: Path, old: str, new: str, before: Plan, after: Plan, session: Any) -> tuple[int, int]:
    from wallaroo_runtime.spark.session import create_session, stop_session
    from wallaroo_runtime.spark.state_store.rescale import rescale as rescale_state

    used = session or create_session(
        after.application, master="local[*]", shuffle_partitions=after.shuffle_partitions, directory=path / "logs"
    )
    try:
        moved = rescale_state(used, path / old, path / new, path / WORK, before, after)
    except RunError:
        remove_rest(path, old)
        raise
    finally:
        if session is None:
            stop_session(used)
    os.sync()  # Spark leaves it to the system when its files are safe
    return moved.keys, moved.size
