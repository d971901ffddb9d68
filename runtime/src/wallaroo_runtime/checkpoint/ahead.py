"""Whether results have left whose input Spark has not committed, as after a kill in real-time mode."""

from pathlib import Path

from wallaroo.frame import split_frames
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.live_state import LiveState, read_last


def last_delivered(state: LiveState) -> int:
    """Return the sequence of the last message of which a result or a dead letter has left; -1: of none."""
    marks = [sequence for sequence, _ in state.marks.values()]
    marks += [sequence for known in state.letters.values() for _, sequence in known]
    return max(marks, default=-1)


def is_ahead(path: Path, offset: int) -> bool:
    """Return whether something has left of input after an offset of the local journal; changes nothing.

    Raises:
        RunError: R612 or R619, the journal is damaged; R620, the outbox is.
    """
    if not (path / "journal" / "head").exists():
        return False
    journal = JournalReader(path / "journal")
    unread = (
        frame.sequence for piece in journal.read(offset, journal.end().offset) for frame, *_ in split_frames(piece)
    )
    first = next(unread, None)
    return first is not None and first <= last_delivered(read_last(path / "outbox").state)
