"""Finds results that were sent before Spark committed their input: a changed program would compute them again."""

from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.compatible import is_other_program
from wallaroo_runtime.checkpoint.integrity import SparkFiles
from wallaroo_runtime.checkpoint.manifest import Manifest, read_manifest
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.live_state import read_last
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.storage.progress import progress_in
from wallaroo_runtime.storage.record_count import read_counted
from wallaroo_runtime.topology.model import Topology

Found = tuple[Diagnostic | None, str]
ELSEWHERE = "its gateway or egress is remote: after a kill a run"
PUBLISHED = (
    "these results stay; this program processes the messages of the micro-batch again, which changes its states but "
    "sends no results"
)
WRITTEN = (
    "sinks that Spark writes keep these results; this program processes the messages of the micro-batch again, for its "
    "states and the other sinks"
)
SENT = "it sent the results of the messages at positions {} to {}, but ended before Spark had committed these messages"
ACCEPT = (
    "; or give --accept-changed: this program then processes these messages again; sinks get each result once if it "
    "has the same steps and returns as many results for each message, else twice or not at all; if you do so, do not "
    "replay the dead letters of these messages"
)


def refused(messages: range) -> RunError:
    """Return the error (R790) that a changed program must not run, because results of these messages were sent."""
    return RunError.of("R790", left=SENT.format(messages.start, messages.stop - 1), other=ACCEPT)


def repeated_batch(batch: int, *, is_published: bool) -> Diagnostic:
    """Return the warning (R754) that a changed program processes a micro-batch again although output of it was sent.

    Args:
        batch: Number of the micro-batch.
        is_published: Whether all output of the micro-batch is published. Otherwise only the sinks that Spark writes
            have their output.
    """
    return Diagnostic.of("R754", batch=batch, kept=PUBLISHED if is_published else WRITTEN)


def find_repeated(path: Path, topology: Topology, *, is_in_use: bool) -> Found:
    """Check, as a run does, whether a changed program would repeat results of a local checkpoint. Write nothing.

    Args:
        path: The checkpoint.
        topology: The topology to continue with, which `safe_changes` accepts.
        is_in_use: Whether a driver uses the checkpoint.

    Returns:
        The warning of a run (R754) or None, and a text about a check that only a run can do, or an empty text.

    Raises:
        RunError: R790 if a run would refuse the checkpoint, R698 if a file is damaged.
    """
    try:
        return _found(path, topology, is_in_use=is_in_use)
    except IsADirectoryError as error:
        raise RunError.of("R698", what=error.filename or path, reason="a directory is where a file belongs") from error


def _found(path: Path, topology: Topology, *, is_in_use: bool) -> Found:
    manifest = read_manifest(path)
    if not is_other_program(manifest.load(), topology):
        return None, ""
    if not manifest.is_realtime:
        return (None, "") if is_in_use else _found_batch(path, manifest)
    if manifest.services or is_in_use:
        where = ELSEWHERE if manifest.services else "it is in use: stop it with Ctrl-C or SIGTERM; after a kill a run"
        return None, f"{where} may refuse this change (R790)"
    if offset := repeated(path, progress_in(LocalDirectory(path), f"{manifest.spark}/").offset):
        raise refused(offset)
    return None, ""


def _found_batch(path: Path, manifest: Manifest) -> Found:
    is_remote = "egress" in manifest.services
    published = Published() if is_remote else Published.of(read_base(path / "outbox"))
    written = read_counted(LocalDirectory(path)).written
    files = SparkFiles(LocalDirectory(path), manifest.spark, published, manifest.rescaled, written=written)
    if is_remote:
        return None, f"{ELSEWHERE} may warn of delivered results (R754)" if files.pending() >= 0 else ""
    batch = files.repeated()
    return None if batch < 0 else repeated_batch(batch, is_published=batch <= published.batch), ""


def delivered_of(outbox: Path) -> int:
    """Return the number (sequence) of the last message whose results a local outbox has sent; -1 if there is none.

    Raises:
        RunError: R698 if the outbox is damaged.
    """
    return read_last(outbox).state.last


def next_of(journal: Path, offset: int) -> int:
    """Return the number (sequence) of the first message after an offset of a local journal; -1 if there is none.

    Raises:
        RunError: R698 if the journal is damaged.
    """
    return JournalReader(journal).next_sequence(offset) if (journal / "head").exists() else -1


def between(first: int, last: int) -> range:
    """Return the numbers (sequences) of the messages that are not committed, but whose results were sent.

    Args:
        first: Sequence of the first uncommitted message; -1 if there is none.
        last: Sequence of the last message whose results were sent.

    Example:
        >>> between(3, 5), bool(between(3, 2)), bool(between(-1, 5))
        (range(3, 6), False, False)
    """
    return range(first, last + 1) if first >= 0 else range(0)


def repeated(path: Path, offset: int) -> range:
    """Return the messages of a local checkpoint that are not committed, up to the last one whose results were sent.

    Nothing is written.

    Args:
        path: The checkpoint.
        offset: The end of the committed input in the journal.

    Raises:
        RunError: R698 if journal or outbox is damaged.
    """
    return between(next_of(path / "journal", offset), delivered_of(path / "outbox"))
