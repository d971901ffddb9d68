"""Whether a checkpoint can be taken to the other mode now: all that was delivered belongs to its last batch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.message.frame import split_frames
from wallaroo_runtime.checkpoint.dead_letter import FOLDER as LETTERS
from wallaroo_runtime.checkpoint.dead_letter import letter_files
from wallaroo_runtime.checkpoint.integrity import offsets_of
from wallaroo_runtime.checkpoint.manifest import MICROBATCH, REALTIME, Manifest
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.spark_log import last_commit, pending_batch


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


def end_of(path: Path, manifest: Manifest) -> End | None:
    """Return where the checkpoint has come to; None: Spark has no micro-batch."""
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.state_store.rescale import state_variables

    mode, folder = manifest.mode, path / manifest.spark
    pending, batch = pending_batch(folder), last_commit(folder)
    if pending is not None and (mode == REALTIME or batch < 0):
        raise once_more(path, mode, f"micro-batch {pending} is planned and not committed")
    if batch < 0:
        return None
    operators = state_variables(folder)
    planned = [f"log_{stage.id}" for level in manifest.plan().levels[1:] for stage in level if stage.has_state]
    found = {name for variables in operators for name in variables if name.startswith("log_")}
    if mode == MICROBATCH and (found - {*planned} or len(operators) != len(manifest.plan().levels) - 1):
        raise once_more(path, mode, "its last run has changed the application and has not processed anything since")
    text = (folder / "offsets" / str(batch)).read_text(encoding="utf-8")
    sources = offsets_of(text) or []
    if not sources or "journal" not in (sources[0] or {}):
        reason = f"its last micro-batch has {len(sources)} sources; expected a journal first"
        raise refused(path, manifest.mode, reason, "leave it as it is")
    journal, offset = JournalReader(path / "journal", int(sources[0]["journal"], 16)), int(sources[0]["offset"])
    pieces = journal.read(offset, journal.end().offset)
    unread = [(header.sequence, header.port) for piece in pieces for header, _, _ in split_frames(piece)]
    query = str(json.loads((folder / "metadata").read_bytes())["id"])
    return End(
        query,
        batch,
        text,
        offset,
        unread[0][0] if unread else -1,
        frozenset(port for _, port in unread),
        tuple(sources[1:]),
    )


def check_microbatch(path: Path, end: End) -> int:
    """Check what real-time mode must not meet; returns the last micro-batch that was published.

    A micro-batch that is planned and not published has left nothing but files that nobody counts: real-time mode reads
    its input. With windows there is one after most runs, since a tick comes each second.
    """
    published = Published.of(read_base(path / "outbox")).batch
    if published > end.batch:
        raise once_more(path, MICROBATCH, f"micro-batch {published} is published and not committed")
    files = letter_files(path / LETTERS)
    if any(batch >= end.offset for batch, *_ in files):
        reason = "its dead letters have numbers of micro-batches that real-time mode would use again"
        raise refused(path, REALTIME, reason, "process some messages first")
    for batch, _, _, letters in files:
        if batch == end.batch + 1:
            letters.unlink()  # of the micro-batch that is planned; a driver, too, writes them again
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


class Refusal(RunError):
    """An R787 whose reason a command that is no conversion can give, too."""

    reason = ""


def refused(path: Path, mode: str, reason: str, fix: str) -> Refusal:
    """Return an R787."""
    error = Refusal.of("R787", USAGE, path=path, mode=mode, reason=reason, fix=fix)
    assert isinstance(error, Refusal)
    error.reason = reason
    return error


def once_more(path: Path, before: str, reason: str) -> Refusal:
    """Return an R787 that a run in the mode of before remedies."""
    wanted = REALTIME if before == MICROBATCH else MICROBATCH
    fix = f"run it once more with --mode {before} --stop-when-idle 5, then again"
    return refused(path, wanted, reason, fix)
