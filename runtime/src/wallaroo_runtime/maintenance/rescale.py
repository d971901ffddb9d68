"""Gives a checkpoint other numbers of shuffle partitions and buckets, or the other mode, while no driver runs.

All is made next to the old files; that the application's record is replaced decides, so a process that is killed leaves
either the checkpoint as it was or the new one. Journal, outbox, positions of sinks and dead letters are the same in
both modes and stay where they are.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.checkpoint.directory import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import (
    MICROBATCH,
    REALTIME,
    Manifest,
    find_manifest,
    manifest_in,
    read_manifest,
    write_manifest,
)
from wallaroo_runtime.checkpoint.spark_folder import is_outdated, next_name, remove_rest
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.maintenance.rescalable import Goal, Refusal, goal_of, once_more
from wallaroo_runtime.plan.bucket import BUCKETS_PER_PARTITION
from wallaroo_runtime.plan.realtime import BUCKETS, PARTITIONS
from wallaroo_runtime.spark.machine.check import check_machine
from wallaroo_runtime.spark.machine.java import check_java
from wallaroo_runtime.spark.machine.master import shuffle_partitions

if TYPE_CHECKING:
    from wallaroo_runtime.peer.remote import RemoteOptions
    from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory

HERE = "local[*]"


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
        if manifest.services:
            raise _far(path, "its journal or its outbox is at a remote service")
        if partitions is not None:
            reason = "it is of real-time mode, which has one partition"
            command = f"wallaroo state convert {path} --to microbatch --partitions {partitions}"
            fix = f"give --buckets alone, or take it to micro-batches: `{command}`"
            raise RunError.of("R663", USAGE, path=path, reason=reason, fix=fix)
    else:
        check_machine()
    with _as_rescale(path):
        return _changed(path, lambda manifest: _numbers(manifest, partitions, buckets))


def convert(path: Path, mode: str, partitions: int | None = None, buckets: int | None = None) -> Rescaled:
    """Take a checkpoint to a mode; nothing is done to one that has it.

    Args:
        path: The checkpoint directory, of an application that can run in the mode.
        mode: `microbatch` or `realtime`.
        partitions: Shuffle partitions of micro-batches; None: as before real-time mode, or as of a new checkpoint.
        buckets: Buckets of each partition; None: likewise, and in real-time mode as of a new checkpoint.

    Raises:
        RunError: R610, a driver runs; R787, it cannot be converted; R664, it did not work. The checkpoint is as before.
    """
    return _changed(path, lambda manifest: _of_mode(manifest, mode, partitions, buckets))


@contextmanager
def _as_rescale(checkpoint: object) -> Iterator[None]:
    """Turn the errors of a conversion into those of a rescale."""
    try:
        yield
    except Refusal as error:
        fix = error.diagnostics[0].fix
        raise RunError.of("R663", error.exit_code, path=checkpoint, reason=error.reason, fix=fix) from error


def _numbers(manifest: Manifest, partitions: int | None, buckets: int | None) -> Manifest:
    before, before_buckets = manifest.numbers
    return replace(manifest, shuffle_partitions=partitions or before, buckets_per_partition=buckets or before_buckets)


def _of_mode(manifest: Manifest, mode: str, partitions: int | None, buckets: int | None) -> Manifest:
    """Return the record of the checkpoint as it shall be, but for Spark's part."""
    if mode == manifest.mode:
        return manifest
    if mode == REALTIME:
        now = replace(manifest, mode=REALTIME, microbatch=manifest.numbers)
        return _numbers(now, PARTITIONS, buckets or BUCKETS)
    before, before_buckets = manifest.microbatch or (shuffle_partitions(HERE), BUCKETS_PER_PARTITION)
    now = replace(manifest, mode=MICROBATCH, microbatch=())
    return _numbers(now, partitions or before, buckets or before_buckets)


def _changed(path: Path, wanted: Callable[[Manifest], Manifest]) -> Rescaled:
    """Rewrite all files but Spark's to match the new manifest."""
    check_java()
    held = HeldDirectory.take(path)
    try:
        held.check_links()
        manifest = read_manifest(path)
        now = wanted(manifest)
        if now != manifest:
            # Late: gRPC takes half a second to import.
            from wallaroo_runtime.peer.local import stop_left_behind

            stop_left_behind(path)  # what it still takes or sends would not be what is looked at
        return _rescale(path, manifest, now, path)
    finally:
        held.release()


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
            "rescale", master=HERE, shuffle_partitions=1, directory=work / "logs", settings=settings
        )
        try:
            directory = HadoopDirectory(session, url)
            manifest = manifest_in(directory)
            if manifest.is_realtime:
                raise _far(url, "at a URL")
            check_known(directory, manifest.services, remote)
            hold = Hold(remote, manifest.name, manifest.id, manifest.services)
            hold.take_gateways()
            wanted = _numbers(manifest, partitions, buckets)
            with _as_rescale(url):
                return _rescale_copy(directory, work, manifest, wanted, session, hold.check)
        finally:
            stop_session(session)


def _far(checkpoint: object, what: str) -> RunError:
    """Return an R663: some of a checkpoint of real-time mode is not on this machine."""
    reason = f"it is of real-time mode, and {what}"
    return RunError.of("R663", USAGE, path=checkpoint, reason=reason, fix="run it with the numbers that it has")


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
