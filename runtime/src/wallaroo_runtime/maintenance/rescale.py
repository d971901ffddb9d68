"""Gives a checkpoint another mode, or other numbers of shuffle partitions and buckets, while no driver runs.

All is made next to the old files; that the application's record is replaced decides, so a process that is killed leaves
either the checkpoint as it was or the new one. Journal, outbox, positions of sinks and dead letters are the same in
both modes and stay where they are.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.checkpoint.directory import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import (
    REALTIME,
    Manifest,
    find_manifest,
    manifest_in,
    read_manifest,
    write_manifest,
)
from wallaroo_runtime.checkpoint.spark_folder import is_outdated, next_name, remove_rest
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a rescale is asked for.

    Attributes:
        mode: `microbatch` or `realtime`; None: as it is.
        partitions: Shuffle partitions of micro-batches; None: as many as it has, or had before real-time mode, or as
            a new checkpoint.
        buckets: Buckets of each partition; None: likewise, and with another mode in real-time mode as a new checkpoint.
    """

    mode: str | None = None
    partitions: int | None = None
    buckets: int | None = None


@dataclass(frozen=True, slots=True)
class Rescaled:
    """The result of a rescale.

    Attributes:
        modes: Before and now.
        partitions: Shuffle partitions before and now.
        buckets: Buckets of each partition before and now.
        keys: Keys with state that were moved, a key of two states twice; 0 when nothing had to be.
        state_bytes: Bytes of their states.
    """

    modes: tuple[str, str]
    partitions: tuple[int, int]
    buckets: tuple[int, int]
    keys: int = 0
    state_bytes: int = 0


def rescale(path: Path, wanted: Wanted) -> Rescaled:
    """Give a checkpoint another mode, or other numbers of partitions and buckets.

    Args:
        path: The checkpoint directory, of an application that can run in the mode.
        wanted: What is to be changed.

    Raises:
        RunError: R610, a driver runs; R663, it cannot be done now; R664, it did not work. The checkpoint is as before.
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
            stop_left_behind(path)  # what it still takes or sends would not be what is looked at
        return _rescale(path, manifest, now, path)
    finally:
        held.release()


def _changed(manifest: Manifest, wanted: Wanted, checkpoint: object, far: str) -> Manifest:
    """Return the record of the checkpoint as it shall be, but for Spark's part.

    Args:
        manifest: As it is.
        wanted: What is to be changed.
        checkpoint: Where the user knows the checkpoint to be.
        far: What of it is not on this machine; empty: nothing.
    """
    mode, microbatch = wanted.mode or manifest.mode, manifest.microbatch
    if REALTIME in (mode, manifest.mode) and far:
        fix = "run it as before; a new --checkpoint, with a gateway and an egress of its own, can begin in another mode"
        raise refused(checkpoint, f"real-time mode is rescaled on one machine, and {far}", fix)
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


def _rescale(path: Path, manifest: Manifest, now: Manifest, checkpoint: object, session: Any = None) -> Rescaled:
    """Rescale a directory of this machine.

    Args:
        path: The directory.
        manifest: Of the checkpoint.
        now: As it shall be, but for Spark's part.
        checkpoint: Where the user knows the checkpoint to be.
        session: One that runs; None: it is started and stopped.
    """
    remove_rest(path, manifest.spark)
    keys = size = 0
    if now != manifest:
        goal = goal_of(path, manifest, now, checkpoint)
        if goal is not None:
            now = replace(now, spark=next_name(manifest.spark), rescaled=(goal.published, goal.batch))
            keys, size = _move(path, manifest, now, goal, session)
            if goal_of(path, manifest, now, checkpoint) != goal:  # its Java may outlive a driver by a moment
                raise once_more(checkpoint, manifest.mode, "an earlier run of it was still ending")
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
    os.sync()  # Spark leaves it to the system when its files are safe
    return moved.keys, moved.size


def rescale_at(url: str, wanted: Wanted, remote: "RemoteOptions", conf: Mapping[str, str]) -> Rescaled:
    """Rescale a checkpoint at a URL; it is done on a copy, in the directory for temporary files.

    Args:
        url: The checkpoint, wherever Hadoop reaches.
        wanted: What is to be changed.
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
            "rescale", master=HERE, shuffle_partitions=1, directory=work / "logs", settings=settings
        )
        try:
            directory = HadoopDirectory(session, url)
            manifest = manifest_in(directory)
            changed = _changed(manifest, wanted, url, "it is at a URL")
            check_known(directory, manifest.services, remote)
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
    """Fetch, rescale, put back under another name; `check` raises when the checkpoint is in use meanwhile."""
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
