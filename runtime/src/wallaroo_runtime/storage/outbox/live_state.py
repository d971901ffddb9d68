"""The state of the live log (output of real-time mode) at an offset: which results and dead letters it has.

Each segment begins with this state, and the entries of the segment change it.
"""

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wallaroo.message.frame import DEAD_LETTER_PORT, HEADER_BYTES, read_header, read_sequences
from wallaroo_runtime.storage.journal.head import read_head
from wallaroo_runtime.storage.outbox.live import BEGIN, FOLDER, OPENING, Entry, live_segments, whole_entries
from wallaroo_runtime.storage.outbox.live_deduplication import Mark, Place, since
from wallaroo_runtime.storage.outbox.log import damaged


@dataclass(frozen=True, slots=True)
class AttemptWriter:
    """Identifies a task attempt in the live log.

    Attributes:
        epoch: Epoch of its driver.
        query: Id of Spark's query.
        batch: Number that identifies the place in the input where the attempt begins. Attempts of one place share it.
        partition: Spark's partition.
        attempt: Spark's id of the attempt.
    """

    epoch: int
    query: str
    batch: int
    partition: int
    attempt: int

    @property
    def letters(self) -> str:
        """Name of the file of the attempt's dead letters."""
        return f"{self.query}-{self.batch}-{self.partition}.frames"


@dataclass(slots=True)
class LiveState:
    """The state of the live log at an offset, by which repeated results and dead letters are found.

    Attributes:
        marks: Last sequence with a result in the log, and the number of its results, by port and bucket.
        writers: The latest attempt of each partition.
        letters: Number of each partition's dead letters that may come again, by bucket and sequence.
        letter_bytes: Size of each partition's file of dead letters.
        messages: Number of messages of each port that were ever in the log.
    """

    marks: dict[Place, Mark] = field(default_factory=dict)
    writers: dict[int, AttemptWriter] = field(default_factory=dict)
    letters: dict[int, dict[Mark, int]] = field(default_factory=dict)
    letter_bytes: dict[int, int] = field(default_factory=dict)
    messages: Counter[int] = field(default_factory=Counter)

    @property
    def last(self) -> int:
        """Sequence of the last message whose result or dead letter is in the log; -1 if none is."""
        marks = [sequence for sequence, _ in self.marks.values()]
        marks += [sequence for known in self.letters.values() for _, sequence in known]
        return max(marks, default=-1)

    def open(self, writer: AttemptWriter, letters_at: int) -> None:
        """Add the task attempt that delivers from now on; `letters_at` is the size of its file of dead letters."""
        before = self.writers.get(writer.partition)
        if before is None or before.letters != writer.letters:
            self.letters.setdefault(writer.partition, {})
            self.letter_bytes[writer.partition] = letters_at
        self.writers[writer.partition] = writer

    def add(self, entry: Entry) -> None:
        """Apply the next entry of the log to the state.

        Raises:
            ValueError: The entry is damaged.
        """
        if entry.kind == BEGIN:
            return
        if entry.kind == OPENING:
            self.open(AttemptWriter(**_line(entry)), entry.sequence)
            return
        header = read_header(entry.content)
        self.messages[entry.port] += header.count - entry.skip
        if entry.port == DEAD_LETTER_PORT:
            self._add_letters(entry)
        else:
            self.marks[entry.port, entry.bucket] = (entry.sequence, entry.count)

    def _add_letters(self, entry: Entry) -> None:
        header, known = read_header(entry.content), self.letters[entry.partition]
        for difference in read_sequences(header, entry.content, HEADER_BYTES):
            mark = (entry.bucket, header.sequence + difference)
            known[mark] = known.get(mark, 0) + 1
        self.letter_bytes[entry.partition] = entry.sequence + len(entry.content)

    def forget_letters(self, partition: int, sequence: int) -> None:
        """Forget dead letters of messages before number `sequence`: no task can repeat these."""
        self.letters[partition] = since(self.letters[partition], sequence)

    def forget_writers(self) -> None:
        """Forget task attempts and dead letters, because Spark has committed the input of all delivered output."""
        self.writers.clear()
        self.letters.clear()
        self.letter_bytes.clear()

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON, for the first entry of a segment."""
        return {
            "marks": [[*place, *mark] for place, mark in self.marks.items()],
            "writers": [asdict(writer) for writer in self.writers.values()],
            "letters": [
                [partition, *mark, count] for partition, known in self.letters.items() for mark, count in known.items()
            ],
            "letter_bytes": list(map(list, self.letter_bytes.items())),
            "messages": list(map(list, self.messages.items())),
        }

    @classmethod
    def of(cls, entry: Entry) -> "LiveState":
        """Read the state from the first entry of a segment.

        Raises:
            ValueError: The entry is damaged.
        """
        value = _line(entry) if entry.kind == BEGIN else {}
        try:
            state = cls(
                {(port, bucket): (sequence, count) for port, bucket, sequence, count in value["marks"]},
                {each["partition"]: AttemptWriter(**each) for each in value["writers"]},
                {each["partition"]: {} for each in value["writers"]},
                {int(partition): int(size) for partition, size in value["letter_bytes"]},
                Counter({int(port): int(count) for port, count in value["messages"]}),
            )
            for partition, bucket, sequence, count in value["letters"]:
                state.letters[partition][bucket, sequence] = count
        except (KeyError, TypeError) as error:
            reason = f"the segment at {entry.offset} does not begin with what is known"
            raise ValueError(reason) from error
        return state


def _line(entry: Entry) -> dict[str, Any]:
    value = entry.line()
    if value is None:
        reason = f"the entry at {entry.offset} does not fit its checksum"
        raise ValueError(reason)
    return value


@dataclass(frozen=True, slots=True)
class LastSegment:
    """The content of the last segment (file) of the live log.

    Attributes:
        state: State of the log at its end.
        end: Offset after the last whole entry.
        letters: Entries of dead letters in the segment, with the names of their files.
    """

    state: LiveState
    end: int
    letters: tuple[tuple[str, Entry], ...] = ()


def read_last(directory: Path) -> LastSegment:
    """Read the last segment of the live log of an outbox.

    Raises:
        RunError: R698 if the segment is damaged, or shorter than the part of the log that was safe.
    """
    segments = live_segments(directory / FOLDER)
    if not segments:
        return LastSegment(LiveState(), 0)
    safe = safe_live(directory)  # read first, since the writer may append to the segment
    first, *entries = whole_entries(segments[-1]) or (Entry(0, offset=segments[-1].base),)
    letters: list[tuple[str, Entry]] = []
    try:
        state = LiveState.of(first)
        for entry in entries:
            state.add(entry)
            if entry.port == DEAD_LETTER_PORT:
                letters.append((state.writers[entry.partition].letters, entry))
    except (ValueError, KeyError) as error:
        raise damaged(directory, f"its live log: {error}") from error
    end = entries[-1].end if entries else first.end
    if end < safe:
        raise damaged(directory, f"its live log is whole up to {end}; up to {safe} it was safe")
    return LastSegment(state, end, tuple(letters))


def safe_live(directory: Path) -> int:
    """Return the offset up to which an outbox's live log is safe on disk; 0 if there is no live log."""
    head = read_head(directory / FOLDER)
    return 0 if head is None else head.offset
