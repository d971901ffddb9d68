"""Takes a checkpoint from micro-batches to real-time mode or back, or to other buckets of it, while no driver runs.

Spark's checkpoint is made next to the old one, as for a rescale; that the application's record is replaced decides. So
a process that is killed leaves either the checkpoint as it was or the new one. Journal, outbox, positions of sinks and
dead letters are the same in both modes and stay where they are.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.checkpoint.directory import Place
from wallaroo_runtime.checkpoint.manifest import MICROBATCH, REALTIME, Manifest, read_manifest, write_manifest
from wallaroo_runtime.checkpoint.spark_folder import WORK, next_name, remove_rest
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.maintenance.convert_topic import Topics
from wallaroo_runtime.maintenance.convertible import (
    End,
    Refusal,
    check_microbatch,
    check_realtime,
    end_of,
    once_more,
)
from wallaroo_runtime.peer.local import stop_left_behind
from wallaroo_runtime.plan.bucket import BUCKETS_PER_PARTITION
from wallaroo_runtime.plan.realtime import BUCKETS, PARTITIONS
from wallaroo_runtime.spark.machine.java import check_java
from wallaroo_runtime.spark.machine.master import shuffle_partitions

HERE = "local[*]"


@dataclass(frozen=True, slots=True)
class Converted:
    """What was done.

    Attributes:
        modes: Before and now.
        partitions: Shuffle partitions before and now.
        buckets: Buckets of each partition before and now.
        keys: Keys with state that were moved; a key of two states counts twice.
        state_bytes: Bytes of their states.
    """

    modes: tuple[str, str]
    partitions: tuple[int, int]
    buckets: tuple[int, int]
    keys: int = 0
    state_bytes: int = 0


def convert(path: Path, mode: str, partitions: int | None = None, buckets: int | None = None) -> Converted:
    """Take a checkpoint to a mode; nothing is done to one that has it.

    Args:
        path: The checkpoint directory, of an application that can run in the mode.
        mode: `microbatch` or `realtime`.
        partitions: Shuffle partitions of micro-batches; None: as before real-time mode, or as of a new checkpoint.
        buckets: Buckets of each partition; None: likewise, and in real-time mode as of a new checkpoint.

    Raises:
        RunError: R610, a driver runs; R787, it cannot be converted; R664, it did not work. The checkpoint is as before.
    """
    return _changed(path, lambda manifest: _wanted(manifest, mode, partitions, buckets))


def rebucket(path: Path, buckets: int) -> Converted:
    """Give a checkpoint of real-time mode another number of buckets.

    Args:
        path: The checkpoint directory.
        buckets: How many.

    Raises:
        RunError: R610, a driver runs; R663, it cannot be done now; R664, it did not work. The checkpoint is as before.
    """
    try:
        return _changed(path, lambda manifest: replace(manifest, buckets_per_partition=buckets))
    except Refusal as error:
        fix = error.diagnostics[0].fix
        raise RunError.of("R663", USAGE, path=path, reason=error.reason, fix=fix) from error


def _changed(path: Path, wanted: Callable[[Manifest], Manifest]) -> Converted:
    """Make a checkpoint what its record is wanted to say, but for Spark's part."""
    check_java()
    place = Place.take(path)
    try:
        place.check_links()
        manifest = read_manifest(path)
        now = wanted(manifest)
        remove_rest(path, manifest.spark)
        keys = size = 0
        if now != manifest:
            stop_left_behind(path)  # what it still takes or sends would not be what is looked at
            keys, size = _convert(path, manifest, now)
        partitions, buckets = zip(manifest.numbers, now.numbers, strict=True)
        return Converted((manifest.mode, now.mode), partitions, buckets, keys, size)
    finally:
        place.release()


def _wanted(manifest: Manifest, mode: str, partitions: int | None, buckets: int | None) -> Manifest:
    """Return the record of the checkpoint as it shall be, but for Spark's part."""
    if mode == manifest.mode:
        return manifest
    if mode == REALTIME:
        now = replace(manifest, shuffle_partitions=PARTITIONS, buckets_per_partition=buckets or BUCKETS)
        return replace(now, mode=REALTIME, microbatch=manifest.numbers)
    before, before_buckets = manifest.microbatch or (shuffle_partitions(HERE), BUCKETS_PER_PARTITION)
    now = replace(manifest, shuffle_partitions=partitions or before, buckets_per_partition=buckets or before_buckets)
    return replace(now, mode=MICROBATCH, microbatch=())


def _convert(path: Path, manifest: Manifest, now: Manifest) -> tuple[int, int]:
    end = end_of(path, manifest)
    keys = size = 0
    if end is not None:
        published = check_realtime(path, end) if manifest.is_realtime else check_microbatch(path, end)
        is_realtime, topics = now.is_realtime, Topics(path, manifest)
        lines = _topics_moved(path, end, topics, is_realtime=is_realtime) if now.mode != manifest.mode else []
        batch = batch_after(end.batch, end.offset, is_realtime=is_realtime)
        now = replace(now, spark=next_name(manifest.spark), rescaled=(published, batch))
        keys, size = _move(path, manifest, now, batch, lines)
        _check_still(path, manifest, end)
    reach("convert.before_switch")
    write_manifest(LocalDirectory(path), now)
    reach("convert.after_switch")
    remove_rest(path, now.spark)
    return keys, size


def _topics_moved(path: Path, end: End, topics: Topics, *, is_realtime: bool) -> list[str]:
    """Let the new mode go on where the old one has read topics to; returns the lines of Spark's offsets for them."""
    if not is_realtime:
        if end.ports & {*topics.ports.values()}:  # Spark would take new records of a key for older ones
            raise once_more(path, REALTIME, "the journal has records of topics that are not processed")
        return topics.lines()
    offsets = topics.of_spark(end.topics)
    if offsets is None:
        raise once_more(path, MICROBATCH, "Spark has not read all topics yet, so it is not known where they begin")
    topics.keep(offsets)
    return []


def _check_still(path: Path, manifest: Manifest, end: End) -> None:
    """Refuse a checkpoint that Spark has gone on with meanwhile: its Java may outlive a driver by a moment."""
    if end_of(path, manifest) != end:
        raise once_more(path, manifest.mode, "an earlier run of it was still ending")


def batch_after(batch: int, offset: int, *, is_realtime: bool) -> int:
    """Return the number of the micro-batch that a conversion adds.

    Files of dead letters have the number of their micro-batch in their names, in real-time mode the offset at which it
    begins. So micro-batches go on after the offset, and never get the number of such a file; offsets grow faster.

    Args:
        batch: The last one.
        offset: Where it ends in the journal.
        is_realtime: Whether the new mode is real-time mode.

    Example:
        >>> batch_after(7, 4000, is_realtime=True), batch_after(8, 9000, is_realtime=False)
        (8, 9001)
    """
    return batch + 1 if is_realtime else max(batch, offset) + 1


def _move(path: Path, manifest: Manifest, now: Manifest, batch: int, topics: list[str]) -> tuple[int, int]:
    from wallaroo_runtime.spark.realtime.settings import session_settings
    from wallaroo_runtime.spark.session import create_session, stop_session
    from wallaroo_runtime.spark.state_store.convert import Conversion
    from wallaroo_runtime.spark.state_store.convert import convert as convert_state

    old, new, is_realtime = manifest.spark, now.spark, now.is_realtime
    before, plan = manifest.plan(), now.plan()
    session = create_session(
        plan.application,
        master=HERE,
        shuffle_partitions=plan.shuffle_partitions,
        directory=path / "logs",
        settings=session_settings({}) if is_realtime else {},
    )
    try:
        what = Conversion(path / old, path / new, path / WORK, before, plan, is_realtime, batch, tuple(topics))
        moved = convert_state(session, what)
    except RunError:
        remove_rest(path, old)
        raise
    finally:
        stop_session(session)
    os.sync()  # Spark leaves it to the system when its files are safe
    return moved.keys, moved.size
