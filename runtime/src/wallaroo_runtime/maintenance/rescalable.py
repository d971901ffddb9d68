"""Checks whether the mode or numbers of a checkpoint can be changed now, and finds where its last micro-batch ends."""

import json
import shlex
from collections.abc import Mapping, Sequence
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
from wallaroo_runtime.gateway.source_progress import SourceProgress
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.record_count import read_counted
from wallaroo_runtime.storage.spark_log import last_commit, pending_batch
from wallaroo_runtime.topology.model import GeneratorSource, KafkaSource

Offsets = dict[int, int]  # offset of the next record of each partition


@dataclass(frozen=True, slots=True)
class Goal:
    """The micro-batch and the offsets at which Spark's new checkpoint continues after a rescale.

    Attributes:
        published: The last micro-batch that was published.
        batch: The last micro-batch that the new checkpoint records. This micro-batch has no input.
        offsets: Lines of this micro-batch's offsets, one for each source.
    """

    published: int
    batch: int
    offsets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class End:
    """The place up to which a checkpoint has processed its input, with the plan of Spark's last micro-batch.

    Attributes:
        query: Id of Spark's query.
        batch: The last micro-batch that Spark has committed.
        plan: Spark's plan of this micro-batch, as its checkpoint has it.
        offset: Offset in the journal at which this micro-batch ends.
        sequence: Sequence of the first frame after `offset`; -1 if the journal ends at `offset`.
        ports: Ports of the sources with frames after `offset`.
        topics: Spark's offsets of its sources other than journals.
    """

    query: str
    batch: int
    plan: str
    offset: int
    sequence: int
    ports: frozenset[int]
    topics: tuple[Any, ...] = ()


def goal_of(path: Path, manifest: Manifest, now: Manifest, place: object) -> Goal | None:
    """Check that a checkpoint can be rescaled now, and return the position at which Spark's new checkpoint continues.

    The result is None if Spark has no checkpoint yet.

    Args:
        path: The checkpoint directory; for a checkpoint at a URL, a copy of Spark's part of it.
        manifest: The checkpoint's record.
        now: The record after the change.
        place: The path or URL of the checkpoint for messages.

    Raises:
        RunError: R663 if the checkpoint cannot be rescaled now.
    """
    folder = path / manifest.spark
    pending, batch = pending_batch(folder), last_commit(folder)
    # Without a committed micro-batch there is no position to continue at; a remote outbox may have published this one.
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


def _topics_moved(path: Path, end: End, topics: "Topics", *, is_realtime: bool) -> tuple[str, ...]:
    """Let the new mode read topics from the offsets that the old mode has reached.

    In micro-batches Spark's checkpoint has these offsets, in real-time mode the journal has them.

    Returns:
        For micro-batches: the offsets as lines for Spark's checkpoint. For real-time mode: nothing.
    """
    if not is_realtime:
        if end.ports & {*topics.ports.values()}:  # Spark would process later records of a key before these
            raise once_more(path, REALTIME, "the journal has records of topics that are not processed")
        return tuple(topics.lines())
    offsets = topics.of_spark(end.topics)
    if offsets is None:
        raise once_more(path, MICROBATCH, "Spark has not read all topics yet, so it is not known where they begin")
    topics.keep(offsets)
    return ()


def batch_after(batch: int, offset: int, *, is_realtime: bool) -> int:
    """Return an unused number for the micro-batch that a change of mode adds: no file of dead letters may have it.

    A file of dead letters has the number of its micro-batch in its name. In real-time mode this number is the offset at
    which the micro-batch begins. So later micro-batches get numbers above the offset.

    Args:
        batch: The last micro-batch.
        offset: Offset in the journal at which this micro-batch ends.
        is_realtime: Whether the new mode is real-time mode.

    Example:
        >>> batch_after(7, 4000, is_realtime=True), batch_after(8, 9000, is_realtime=False)
        (8, 9001)
    """
    return batch + 1 if is_realtime else max(batch, offset) + 1


def check_operators(folder: Path, manifest: Manifest, place: object) -> None:
    """Refuse a checkpoint whose states do not fit: its last run had a changed application, but processed nothing.

    Such a checkpoint has another number of Spark's operators than the plan of the application needs.
    """
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.state_store.layout import operator_count, operators_of

    if operator_count(folder) not in (0, len(operators_of(manifest.plan(), is_realtime=manifest.is_realtime))):
        raise once_more(place, manifest.mode, "its last run had a changed application and has processed nothing")


def _plan(folder: Path, batch: int) -> str:
    return (folder / "offsets" / str(batch)).read_text(encoding="utf-8")


def query_of(folder: Path) -> str:
    """Return the id of the query from Spark's checkpoint."""
    return str(json.loads((folder / "metadata").read_bytes())["id"])


def end_of(path: Path, manifest: Manifest) -> End:
    """Return the end of the processed input of a checkpoint. Spark must have committed a micro-batch."""
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
    """Refuse a checkpoint that real-time mode cannot continue. Return the last micro-batch that was published."""
    if any(batch >= end.offset for batch, *_ in letter_files(path / LETTERS)):
        reason = "its dead letters have numbers of micro-batches that real-time mode would use again"
        folder, copy = shlex.quote(str(path)), shlex.quote(f"{path}.letters")
        fix = (
            "process some messages first; if all sources are topics, remove the letters instead, and keep a copy: "
            f"`wallaroo backup {folder} {copy} && wallaroo dead-letters prune {folder} --all`"
        )
        raise refused(path, reason, fix)
    return check_unpublished(path, end.query, end.batch)


def check_unpublished(path: Path, query: str, last: int) -> int:
    """Discard a micro-batch that is planned but not published. Return the last published micro-batch.

    The discarded micro-batch has left only files that are not counted, and its input is read again. With windows,
    timers or visits, most runs leave such a micro-batch, since a tick comes each second.

    Args:
        path: The checkpoint directory.
        query: Id of Spark's query.
        last: The last micro-batch that Spark has committed.

    Raises:
        RunError: R663 if the next micro-batch is published, which only a run can finish.
    """
    published = Published.of(read_base(path / "outbox")).batch
    counted = read_counted(LocalDirectory(path))
    if counted.query == query:  # Spark's own sinks get a micro-batch before it is published
        published = max(published, counted.written)
    if published > last:
        raise once_more(path, MICROBATCH, f"micro-batch {published} is published and not committed")
    for batch, _, _, letters in letter_files(path / LETTERS):
        if batch == last + 1:
            letters.unlink()  # a driver would also remove and rewrite the letters of this micro-batch
    return published


def check_realtime(path: Path, end: End) -> int:
    """Refuse a checkpoint with sent results of uncommitted input. Else publish its last batch; return its number."""
    outbox, letters = path / "outbox", path / LETTERS
    live = LiveLog(outbox, letters)  # opening removes an incomplete end, and syncs the rest to disk
    live.close()
    if 0 <= end.sequence <= live.state.last:
        raise once_more(path, REALTIME, "Spark has not committed the input of delivered results")
    # The driver does this after each commit, unless it is killed in between.
    Outbox(outbox, letters).publish(end.query, end.batch, (), end.plan)
    return end.batch


def refused(path: object, reason: str, fix: str) -> RunError:
    """Return the error that a rescale is not possible now (R663), with the reason and the remedy."""
    return RunError.of("R663", USAGE, path=path, reason=reason, fix=fix)


def once_more(path: object, before: str, reason: str) -> RunError:
    """Return the error (R663) whose remedy is to run the application once more in mode `before`."""
    return refused(path, reason, f"run it once more with --mode {before} --stop-when-idle 5, then repeat this command")


class Topics:
    """Moves the offsets of Kafka topics between Spark's checkpoint and the journal, for a change of the mode.

    Args:
        path: The checkpoint directory.
        manifest: The checkpoint's record.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._journal, topology = path / "journal", manifest.load()
        known = manifest.ports.parts
        self.sources: list[KafkaSource] = list(topology.kafka_sources())
        self.ports = {source.path: known[source.path] for source in self.sources}
        self._ids = manifest.topics
        self._generators = [known[each.path] for each in topology.sources() if isinstance(each, GeneratorSource)]

    def of_spark(self, lines: Sequence[Any]) -> dict[str, Offsets] | None:
        """Return the offsets that Spark has reached in each source, by path; None if it has not read all sources.

        Args:
            lines: Spark's offsets of its sources other than journals.
        """
        if len(lines) != len(self.sources) or None in lines:
            return None
        pairs = zip(self.sources, lines, strict=True)
        return {each.path: {int(at): int(next_) for at, next_ in line[each.topic].items()} for each, line in pairs}

    def lines(self) -> list[str]:
        """Return the offsets that the journal has reached, for each Kafka source, as lines for Spark's offset log."""
        points = self._past().points if self.sources else {}
        return [json.dumps({each.topic: {str(at): point for at, point in points[self.ports[each.path]].items()}})
                for each in self.sources]  # fmt: skip

    def keep(self, offsets: Mapping[str, Offsets]) -> None:
        """Note Spark's offsets next to the journal, so that the gateway continues at them in real-time mode."""
        if not self.sources:
            return
        past = self._past()
        past.points.update({self.ports[path]: dict(ends) for path, ends in offsets.items()})
        past.topics.update(self._ids)
        past.save()

    def _past(self) -> SourceProgress:
        past = SourceProgress(self._journal, self._generators, (), self.ports.values())
        past.advance(JournalReader(self._journal).end().offset)
        return past
