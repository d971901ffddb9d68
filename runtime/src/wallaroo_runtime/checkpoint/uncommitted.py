"""Finds results that were sent before Spark committed their input: a changed program would compute them again."""

from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.live_state import read_last

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
    """Return the error (R790) that a changed program must not run: results of these uncommitted messages were sent."""
    return RunError.of("R790", left=SENT.format(messages.start, messages.stop - 1), other=ACCEPT)


def repeated_batch(batch: int, *, is_published: bool) -> Diagnostic:
    """Return the warning (R754) that a changed program repeats a micro-batch of which output was sent.

    Args:
        batch: Number of the micro-batch.
        is_published: Whether all output of the micro-batch is published. Otherwise only the sinks that Spark writes
            have their output.
    """
    return Diagnostic.of("R754", batch=batch, kept=PUBLISHED if is_published else WRITTEN)


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
