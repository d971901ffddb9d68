"""Whether a checkpoint can be rescaled now, and how far its last micro-batch has come."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.message.frame import split_frames
from wallaroo_runtime.checkpoint.dead_letter import FOLDER as LETTERS
from wallaroo_runtime.checkpoint.dead_letter import letter_files
from wallaroo_runtime.checkpoint.integrity import offsets_of
from wallaroo_runtime.checkpoint.manifest import MICROBATCH, REALTIME, Manifest
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.maintenance.rescale_topic import Topics
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.record_count import read_counted
from wallaroo_runtime.storage.spark_log import last_commit, pending_batch


@dataclass(frozen=True, slots=True)
class Goal:
    """What Spark's new checkpoint is to have besides states.

    Attributes:
        published: The last micro-batch that was published.
        batch: The last micro-batch that the new checkpoint shall have, which has no input.
        offsets: Lines of its offsets, one for each source.
    """

    published: int
    batch: int
    offsets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class End:
    """Where a checkpoint has come to.

    Attributes:
        query: Id of Spark's query.
        batch: The last micro-batch that Spark has committed.
        plan: What Spark had planned for it, as its checkpoint says.
        offset: Where it ends in the journal.
        sequence: Of the first frame after that; -1: the journal ends there.
        ports: Of the frames after that.
        topics: What Spark's offsets say of its sources that are no journals.
    """

    query: str
    batch: int
    plan: str
    offset: int
    sequence: int
    ports: frozenset[int]
    topics: tuple[Any, ...] = ()


def goal_of(path: Path, manifest: Manifest, now: Manifest, place: object) -> Goal | None:
    """Return what Spark's new checkpoint is to have; None: Spark has none yet.

    Args:
        path: The checkpoint directory, or of one at a URL a copy of what Spark has there.
        manifest: Its record.
        now: Its record to be.
        place: Where the user knows it to be.

    Raises:
        RunError: R663, it cannot be done now.
    """
    folder = path / manifest.spark
    pending, batch = pending_batch(folder), last_commit(folder)
    # Without one that is committed there is nothing to go on after; a remote outbox may have published it.
    if pending is not None and (batch < 0 or manifest.is_realtime or manifest.services):
        raise once_more(place, manifest.mode, f"micro-batch {pending} is planned and not committed")
    check_operators(folder, manifest, place)
    if batch < 0:
        return None
    if not (manifest.is_realtime or now.is_realtime):
        check_unpublished(path, query_of(folder), batch)
        before, after = manifest.rescaled
        return Goal(before if batch == after else batch, batch + 1, tuple(_plan(folder, batch).splitlines()[2:]))
    end = end_of(path, manifest)
    published = check_realtime(path, end) if manifest.is_realtime else check_microbatch(path, end)
    is_same = manifest.mode == now.mode
    lines = () if is_same else _topics_moved(path, end, Topics(path, manifest), is_realtime=now.is_realtime)
    batch = batch_after(batch, end.offset, is_realtime=now.is_realtime)
    return Goal(published, batch, (end.plan.splitlines()[2], *lines))


def _topics_moved(path: Path, end: End, topics: Topics, *, is_realtime: bool) -> tuple[str, ...]:
    """Let the new mode go on where the old one has read topics to; returns the lines of Spark's offsets for them."""
    if not is_realtime:
        if end.ports & {*topics.ports.values()}:  # Spark would take new records of a key for older ones
            raise once_more(path, REALTIME, "the journal has records of topics that are not processed")
        return tuple(topics.lines())
    offsets = topics.of_spark(end.topics)
    if offsets is None:
        raise once_more(path, MICROBATCH, "Spark has not read all topics yet, so it is not known where they begin")
    topics.keep(offsets)
    return ()


def batch_after(batch: int, offset: int, *, is_realtime: bool) -> int:
    """Return the number of the micro-batch that a change from or to real-time mode adds.

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


def check_operators(folder: Path, manifest: Manifest, place: object) -> None:
    """Refuse a checkpoint whose last run has another plan than what Spark has stored."""
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.state_store.layout import operator_count, operators_of

    if operator_count(folder) not in (0, len(operators_of(manifest.plan(), is_realtime=manifest.is_realtime))):
        raise once_more(
            place, manifest.mode, "its last run has changed the application and has not processed anything since"
        )


def _plan(folder: Path, batch: int) -> str:
    return (folder / "offsets" / str(batch)).read_text(encoding="utf-8")


def query_of(folder: Path) -> str:
    """Return the id of the query that Spark's checkpoint is of."""
    return str(json.loads((folder / "metadata").read_bytes())["id"])


def end_of(path: Path, manifest: Manifest) -> End:
    """Return where a checkpoint has come to, of which Spark has committed a micro-batch."""
    folder = path / manifest.spark
    batch = last_commit(folder)
    text = _plan(folder, batch)
    sources = offsets_of(text) or []
    if not sources or "journal" not in (sources[0] or {}):
        reason = f"its last micro-batch has {len(sources)} sources; expected a journal first"
        raise refused(path, reason, "leave it as it is")
    journal, offset = JournalReader(path / "journal", int(sources[0]["journal"], 16)), int(sources[0]["offset"])
    pieces = journal.read(offset, journal.end().offset)
    unread = [(header.sequence, header.port) for piece in pieces for header, _, _ in split_frames(piece)]
    return End(
        query_of(folder),
        batch,
        text,
        offset,
        unread[0][0] if unread else -1,
        frozenset(port for _, port in unread),
        tuple(sources[1:]),
    )


def check_microbatch(path: Path, end: End) -> int:
    """Check what real-time mode must not meet; returns the last micro-batch that was published."""
    if any(batch >= end.offset for batch, *_ in letter_files(path / LETTERS)):
        reason = "its dead letters have numbers of micro-batches that real-time mode would use again"
        raise refused(path, reason, "process some messages first")
    return check_unpublished(path, end.query, end.batch)


def check_unpublished(path: Path, query: str, last: int) -> int:
    """Leave a micro-batch that is planned; returns the last one that was published.

    Until it is published it has left nothing but files that nobody counts, so its input is read again. With windows,
    timers or visits there is one after most runs, since a tick comes each second.

    Args:
        path: The checkpoint directory.
        query: Id of Spark's query.
        last: The last micro-batch that Spark has committed.

    Raises:
        RunError: R663, the next one is published, and only a run can finish it.
    """
    published = Published.of(read_base(path / "outbox")).batch
    counted = read_counted(LocalDirectory(path))
    if counted.query == query:  # Spark's own sinks get a micro-batch before it is published
        published = max(published, counted.written)
    if published > last:
        raise once_more(path, MICROBATCH, f"micro-batch {published} is published and not committed")
    for batch, _, _, letters in letter_files(path / LETTERS):
        if batch == last + 1:
            letters.unlink()  # a driver, too, writes them again
    return published


def check_realtime(path: Path, end: End) -> int:
    """Check that nothing was delivered but what is committed; returns the last batch, of which a record is made."""
    outbox, letters = path / "outbox", path / LETTERS
    live = LiveLog(outbox, letters)  # cuts what is not whole, and makes the rest safe
    live.close()
    if 0 <= end.sequence <= live.state.last:
        raise once_more(path, REALTIME, "results were delivered whose input Spark has not committed")
    # The driver does that after each commit, unless it is killed in between.
    Outbox(outbox, letters).publish(end.query, end.batch, (), end.plan)
    return end.batch


def refused(path: object, reason: str, fix: str) -> RunError:
    """Return an R663."""
    return RunError.of("R663", USAGE, path=path, reason=reason, fix=fix)


def once_more(path: object, before: str, reason: str) -> RunError:
    """Return an R663 that a run in the mode of before remedies."""
    return refused(path, reason, f"run it once more with --mode {before} --stop-when-idle 5, then again")
