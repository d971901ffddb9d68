"""Gives a checkpoint another mode, or other numbers of shuffle partitions and buckets, while no driver runs.

The new files are made next to the old ones. The rescale takes effect when the application's record is replaced, so a
process that is killed leaves the old checkpoint or the new one. Journal, outbox, positions of sinks and dead letters
are the same in both modes and are not changed.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.checkpoint.directory import SPARK
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import (
    REALTIME,
    Manifest,
    find_manifest,
    manifest_in,
    read_manifest,
    write_manifest,
)
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.maintenance.rescalable import Goal, goal_of, once_more, refused
from wallaroo_runtime.plan.bucket import BUCKETS_PER_PARTITION
from wallaroo_runtime.plan.realtime import BUCKETS, PARTITIONS
from wallaroo_runtime.spark.machine.check import check_machine
from wallaroo_runtime.spark.machine.master import shuffle_partitions

if TYPE_CHECKING:
    from wallaroo_runtime.peer.remote import RemoteOptions
    from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory

HERE = "local[*]"
AT_URL = "it is at a URL"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The mode and the numbers that a rescale shall give to a checkpoint.

    Attributes:
        mode: `microbatch` or `realtime`; None for the present mode.
        partitions: Shuffle partitions of micro-batches. None means the present number; after real-time mode the number
            before it, or else the number of a new checkpoint.
        buckets: Buckets of each partition. None is as for `partitions`, but a change to real-time mode takes the
            default.
    """

    mode: str | None = None
    partitions: int | None = None
    buckets: int | None = None


@dataclass(frozen=True, slots=True)
class Rescaled:
    """The result of a rescale.

    Attributes:
        modes: Modes before and after.
        partitions: Shuffle partitions before and after.
        buckets: Buckets of each partition before and after.
        keys: Number of keys whose states were moved, counted for each state; 0 if no move was necessary.
        state_bytes: Number of bytes of the moved states.
    """

    modes: tuple[str, str]
    partitions: tuple[int, int]
    buckets: tuple[int, int]
    keys: int = 0
    state_bytes: int = 0


def rescale(path: Path, wanted: Wanted, tell: Callable[[], None] = lambda: None) -> Rescaled:
    """Give a checkpoint on this machine another mode, or other numbers of partitions and buckets.

    Args:
        path: The checkpoint directory; the application must be able to run in the new mode.
        wanted: The changes.
        tell: Called before the change begins.

    Raises:
        RunError: R610 if a driver runs, R663 if a rescale is not possible now, R664 if the rescale failed. In each
            case the checkpoint is unchanged.
    """
    held = HeldDirectory.take(path)
    try:
        held.check_links()
        manifest = read_manifest(path)
        far = "its journal or its outbox is at a remote service" if manifest.services else ""
        now = _changed(manifest, wanted, path, far)
        if now != manifest:
            # Late: gRPC takes half a second to import.
            from wallaroo_runtime.peer.local import stop_left_behind

            check_machine()
            tell()
            stop_left_behind(path)  # gateway and egress could change the checkpoint meanwhile
        return _rescale(path, manifest, now, path)
    finally:
        held.release()


def _changed(manifest: Manifest, wanted: Wanted, checkpoint: object, far: str) -> Manifest:
    """Return the checkpoint's record (`application.json`) with the wanted mode and numbers.

    Spark's part of the record changes later, when Spark's new checkpoint is written.

    Args:
        manifest: The present record.
        wanted: The changes.
        checkpoint: The path or URL of the checkpoint for messages.
        far: Part of the checkpoint that is not on this machine; empty if there is none.
    """
    mode, microbatch = wanted.mode or manifest.mode, manifest.microbatch
    if REALTIME in (mode, manifest.mode) and far:
        raise _far_away(checkpoint, far)
    if mode == REALTIME and wanted.partitions is not None:
        raise refused(checkpoint, "real-time mode has one partition", "give --buckets alone, or --mode microbatch")
    partitions, buckets = manifest.numbers
    if mode == REALTIME != manifest.mode:
        microbatch, (partitions, buckets) = manifest.numbers, (PARTITIONS, BUCKETS)
    elif mode != manifest.mode:
        partitions, buckets = microbatch or (shuffle_partitions(HERE), BUCKETS_PER_PARTITION)
        microbatch = ()
    return replace(
        manifest,
        mode=mode,
        microbatch=microbatch,
        shuffle_partitions=wanted.partitions or partitions,
        buckets_per_partition=wanted.buckets or buckets,
    )


def _far_away(checkpoint: object, far: str) -> RunError:
    fix = "run it as before; a new --checkpoint, with its own gateway and egress, can begin in another mode"
    return refused(checkpoint, f"real-time mode can be rescaled only on one machine, but {far}", fix)


def _rescale(path: Path, manifest: Manifest, now: Manifest, checkpoint: object, session: Any = None) -> Rescaled:
    """Rescale the files in a local directory: a checkpoint, or a copy of Spark's part of a checkpoint at a URL.

    Args:
        path: The directory.
        manifest: Record of the checkpoint.
        now: The record after the change, except for Spark's part.
        checkpoint: The path or URL of the checkpoint for messages.
        session: A session to use; None starts a session and stops it afterwards.
    """
    remove_rest(path, manifest.spark)
    keys = size = 0
    if now != manifest:
        goal = goal_of(path, manifest, now, checkpoint)
        if goal is not None:
            now = replace(now, spark=next_name(manifest.spark), rescaled=(goal.published, goal.batch))
            keys, size = _move(path, manifest, now, goal, session)
            if goal_of(path, manifest, now, checkpoint) != goal:  # Java may outlive its driver by a moment
                raise once_more(checkpoint, manifest.mode, "an earlier run was still ending")
        reach("rescale.before_switch")
        write_manifest(LocalDirectory(path), now)
        reach("rescale.after_switch")
        remove_rest(path, now.spark)
    partitions, buckets = zip(manifest.numbers, now.numbers, strict=True)
    return Rescaled((manifest.mode, now.mode), partitions, buckets, keys, size)


def _move(path: Path, manifest: Manifest, now: Manifest, goal: Goal, session: Any) -> tuple[int, int]:
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.session import create_session, stop_session
    from wallaroo_runtime.spark.state_store.rescale import Rescaling
    from wallaroo_runtime.spark.state_store.rescale import rescale as rescale_state

    plan = now.plan()
    used = session or create_session(
        plan.application, master=HERE, shuffle_partitions=plan.shuffle_partitions, directory=path / "logs"
    )
    what = Rescaling(
        path / manifest.spark, path / now.spark, manifest.plan(), plan, now.is_realtime, goal.batch, goal.offsets
    )
    try:
        moved = rescale_state(used, what)
    except RunError:
        remove_rest(path, manifest.spark)
        raise
    finally:
        if session is None:
            stop_session(used)
    os.sync()  # Spark does not sync its files to disk
    return moved.keys, moved.size


def rescale_at(
    url: str, wanted: Wanted, remote: "RemoteOptions", conf: Mapping[str, str], tell: Callable[[], None] = lambda: None
) -> Rescaled:
    """Rescale a checkpoint at a URL, with a copy of it in the directory for temporary files.

    Args:
        url: The checkpoint at any URL that Hadoop can read.
        wanted: The changes.
        remote: The checkpoint's egress and gateways. From now on, the gateways refuse drivers that were started before.
        conf: Settings of Spark, e.g. for the file system.
        tell: Called before the checkpoint's services are taken.

    Raises:
        RunError: The errors of `rescale`. R608 or R615 if `remote` lacks a service, R642 or R643 if a gateway does not
            answer or is another one, R644 if a driver was started meanwhile, R684 if the file system refuses.
    """
    # Late: gRPC and pyspark take a second to import.
    from wallaroo_runtime.checkpoint.url import check_answer, check_services, is_remote
    from wallaroo_runtime.peer.remote import check_known
    from wallaroo_runtime.peer.takeover import Hold
    from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory
    from wallaroo_runtime.spark.machine.settings import REMOTE_FILES
    from wallaroo_runtime.spark.session import create_session, stop_session

    if wanted.mode == REALTIME:
        raise _far_away(url, AT_URL)
    check_services(url, remote)
    check_machine()
    check_answer(url)
    settings = (REMOTE_FILES if is_remote(url) else {}) | dict(conf)
    with TemporaryDirectory(prefix="wallaroo-rescale-") as folder:
        work = Path(folder)
        session = create_session(
            "rescale", master=HERE, shuffle_partitions=1, directory=work / "logs", settings=settings
        )
        try:
            directory = HadoopDirectory(session, url)
            manifest = manifest_in(directory)
            changed = _changed(manifest, wanted, url, AT_URL)
            check_known(directory, manifest.services, remote)
            tell()
            hold = Hold(remote, manifest.name, manifest.id, manifest.services)
            hold.take_gateways()
            return _rescale_copy(directory, work, manifest, changed, session, hold.check)
        finally:
            stop_session(session)


def _rescale_copy(
    directory: "HadoopDirectory",
    work: Path,
    manifest: Manifest,
    changed: Manifest,
    session: Any,
    check: Callable[[], None],
) -> Rescaled:
    """Fetch Spark's part of a checkpoint at a URL, rescale it, and write it back under another name.

    `check` raises an error if a driver has used the checkpoint meanwhile.
    """
    from wallaroo_runtime.spark.state_store.rescale import relocate

    spark = manifest.spark
    directory.fetch(spark, work / spark)
    relocate(work / spark, f"file:{work / spark}")
    done = _rescale(work, manifest, changed, directory, session)
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


def next_name(spark: str) -> str:
    """Return the name of the next directory for Spark's part of a checkpoint.

    Example:
        >>> next_name("spark"), next_name("spark-2")
        ('spark-2', 'spark-3')
    """
    name, _, number = spark.partition("-")
    return f"{name}-{int(number or 1) + 1}"


def remove_rest(path: Path, spark: str) -> None:
    """Remove the directories of Spark that earlier or failed rescales have left, but not `spark`, the one in use."""
    for entry in path.iterdir():
        if is_outdated(entry.name, spark) and entry.is_dir():
            shutil.rmtree(entry)


def is_outdated(name: str, used: str) -> bool:
    """Say whether a name in a checkpoint is the name of a directory that Spark no longer uses."""
    return name != used and (name == SPARK or name.startswith(f"{SPARK}-"))
