"""Orders the messages and ticks of a bucket call's windows by sequence, independently of the order of the frames."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple


class Tick(NamedTuple):
    """A tick. `ordinal` is its number in the call, counted from 1."""

    sequence: int
    time: int
    ordinal: int

    @property
    def place(self) -> tuple[int, ...]:
        """Sorting key of ticks and visits. A tick comes before visits of the same sequence."""
        return self.sequence, 0, self.time, self.ordinal

    @property
    def timestamp_ms(self) -> int:
        """The tick's time, under the name that messages use."""
        return self.time


@dataclass(slots=True)
class MessageRun:
    """Consecutive messages of one window step."""

    keys: list[bytes]
    indexes: Sequence[int]
    messages: Sequence[Any]
    sequences: Sequence[int]
    times: Sequence[int]
    ordinals: Sequence[int]

    def rows(self) -> Iterable[tuple[int, Any, int, int, int]]:
        """Return number in the call, message, index of the key, sequence and time of each message."""
        return zip(self.ordinals, self.messages, self.indexes, self.sequences, self.times, strict=True)

    def at(self, start: int, end: int) -> "MessageRun":
        """Return the messages from position `start` on and before position `end`."""
        if (start, end) == (0, len(self.messages)):
            return self
        columns = (self.indexes, self.messages, self.sequences, self.times, self.ordinals)
        return MessageRun(self.keys, *(column[start:end] for column in columns))

    def pick(self, positions: Sequence[int]) -> "MessageRun":
        """Return the messages at some positions."""
        columns = (self.indexes, self.messages, self.sequences, self.times, self.ordinals)
        return MessageRun(self.keys, *([column[position] for position in positions] for column in columns))


def joined(runs: Sequence[MessageRun]) -> MessageRun:
    """Return the messages of several frames as one run, in the order of their sequences."""
    keys: dict[bytes, int] = {}
    whole = MessageRun([], [], [], [], [], [])
    for run in runs:
        places = [keys.setdefault(key, len(keys)) for key in run.keys]
        whole.indexes = [*whole.indexes, *(places[index] for index in run.indexes)]
        whole.messages = [*whole.messages, *run.messages]
        whole.sequences = [*whole.sequences, *run.sequences]
        whole.times = [*whole.times, *run.times]
        whole.ordinals = [*whole.ordinals, *run.ordinals]
    whole.keys = list(keys)
    return whole.pick(sorted(range(len(whole.messages)), key=whole.sequences.__getitem__))


def in_order(runs: list[MessageRun], ticks: list[Tick]) -> Iterator[MessageRun | Tick]:
    """Yield messages and ticks by sequence. A tick precedes messages with the same sequence."""
    runs = [run for run in runs if run.messages]
    is_sorted = all(isinstance(run.sequences, range) or sorted(run.sequences) == run.sequences for run in runs)
    if not is_sorted or any(before.sequences[-1] > after.sequences[0] for before, after in pairwise(runs)):
        runs = [joined(runs)]
    waiting = sorted(ticks)
    waiting.reverse()
    for run in runs:
        start, end = 0, len(run.messages)
        while waiting and waiting[-1].sequence <= run.sequences[-1]:
            at = bisect_left(run.sequences, waiting[-1].sequence, start)
            if at > start:
                yield run.at(start, at)
            yield waiting.pop()
            start = at
        yield run.at(start, end)
    while waiting:
        yield waiting.pop()
