"""Whether results have left whose input Spark has not committed, as after a kill in real-time mode."""

from pathlib import Path

from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.live_state import read_last


def delivered_of(outbox: Path) -> int:
    """Return the sequence of the last message of which something has left a local outbox; -1: of none.

    Raises:
        RunError: R620, the outbox is damaged.
    """
    return read_last(outbox).state.last


def next_of(journal: Path, offset: int) -> int:
    """Return the sequence of the first frame after an offset of a local journal; -1: there is none.

    Raises:
        RunError: R612 or R619, the journal is damaged.
    """
    return JournalReader(journal).next_sequence(offset) if (journal / "head").exists() else -1


def between(first: int, last: int) -> range:
    """Return the sequences from the first that is not committed to the last of which something has left.

    Example:
        >>> between(3, 5), bool(between(3, 2)), bool(between(-1, 5))
        (range(3, 6), False, False)
    """
    return range(first, last + 1) if first >= 0 else range(0)


def repeated(path: Path, offset: int) -> range:
    """Return the messages after an offset of the local journal up to the last of which something has left.

    Changes nothing.

    Raises:
        RunError: R612 or R619, the journal is damaged; R620, the outbox is.
    """
    return between(next_of(path / "journal", offset), delivered_of(path / "outbox"))
