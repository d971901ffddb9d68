"""Orders the messages of a bucket call by sequence, independently of the order of the frames."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, pairwise, repeat
from typing import Any

from wallaroo.message.frame import HEADER_BYTES, FrameHeader, read_sequences
from wallaroo.worker.bucket.cell import CellTable

Place = tuple[FrameHeader, bytes, int]  # place of a frame: its header, the bytes that contain it, and its begin


@dataclass(frozen=True, slots=True)
class Same(Sequence[Any]):
    """A sequence of `size` equal elements, of which only one is in memory."""

    value: Any
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, position: Any) -> Any:
        chosen = range(self.size)[position]
        return Same(self.value, len(chosen)) if isinstance(chosen, range) else self.value

    def __iter__(self) -> Iterator[Any]:
        return repeat(self.value, self.size)


@dataclass(slots=True)
class Messages:
    """Messages of one frame for a state step or window step. `entry` is the step's `StateEntry` or `WindowEntry`."""

    entry: Any
    table: CellTable
    keys: list[bytes]
    messages: Sequence[Any]
    indexes: Sequence[int]
    sequences: Sequence[int]
    ordinals: Sequence[int]
    times: Sequence[int] = ()  # times of the messages; empty if the stage does not need them
    is_visit: bool = False  # whether the messages are the metadata of a visit to the keys

    def rows(self) -> Iterable[tuple[int, Any, int, int, int]]:
        """Return number in the call, message, index of the key, sequence and time of each message."""
        return zip(self.ordinals, self.messages, self.indexes, self.sequences, self.times, strict=True)

    def keep(self, positions: Sequence[int]) -> None:
        """Keep only the messages at some positions."""
        self.messages = [self.messages[position] for position in positions]
        self.indexes = [self.indexes[position] for position in positions]
        self.sequences = [self.sequences[position] for position in positions]
        self.ordinals = [self.ordinals[position] for position in positions]
        self.times = [self.times[position] for position in positions] if self.times else ()

    def pick(self, positions: Sequence[int]) -> "Messages":
        """Return the messages at some positions as a new object, with only the keys of these messages."""
        places: dict[int, int] = {}
        return Messages(
            self.entry,
            self.table,
            messages=[self.messages[position] for position in positions],
            indexes=[places.setdefault(self.indexes[position], len(places)) for position in positions],
            keys=[self.keys[index] for index in places],
            sequences=[self.sequences[position] for position in positions],
            ordinals=[self.ordinals[position] for position in positions],
            times=[self.times[position] for position in positions] if self.times else (),
            is_visit=self.is_visit,
        )


def joined(parts: Sequence[Messages]) -> Messages:
    """Return the messages of several frames for one step as one object, in the order of their sequences."""
    keys: dict[bytes, int] = {}
    places = [[keys.setdefault(key, len(keys)) for key in part.keys] for part in parts]
    whole = Messages(
        parts[0].entry,
        parts[0].table,
        messages=[message for part in parts for message in part.messages],
        indexes=[own[index] for part, own in zip(parts, places, strict=True) for index in part.indexes],
        keys=list(keys),
        sequences=[sequence for part in parts for sequence in part.sequences],
        ordinals=[ordinal for part in parts for ordinal in part.ordinals],
        times=[time for part in parts for time in part.times],
    )
    return whole.pick(sorted(range(len(whole.messages)), key=whole.sequences.__getitem__))


def of_windows(parts: Iterable[Messages]) -> Sequence[Messages]:
    """Return the messages of a window step in the order of their sequences."""
    parts = [part for part in parts if part.messages]
    is_sorted = all(isinstance(part.sequences, range) or sorted(part.sequences) == part.sequences for part in parts)
    if not is_sorted or any(before.sequences[-1] > after.sequences[0] for before, after in pairwise(parts)):
        return [joined(parts)]
    return parts


def is_in_order(frames: Iterable[Place]) -> bool:
    """Return whether the messages of consecutive frames are in the order of their sequences.

    Raises:
        FrameError: The columns of a frame contradict each other.
    """
    last = 0
    for header, data, start in frames:
        if not header.count:
            continue
        sequences = read_sequences(header, data, start + HEADER_BYTES)
        if header.sequence + sequences[0] < last:
            return False
        if not isinstance(sequences, range):
            numbers = list(sequences)  # in a list, `sorted` keeps the objects, so comparing the two lists is fast
            if sorted(numbers) != numbers:
                return False
        last = header.sequence + sequences[-1]
    return True


def in_turn(parts: Sequence[Messages]) -> Iterator[Messages]:
    """Yield the messages of several frames by sequence, those of equal sequence in the order of the frames."""
    sequences = list(chain.from_iterable(part.sequences for part in parts))
    owners = [number for number, part in enumerate(parts) for _ in part.sequences]
    starts = list(accumulate((len(part.sequences) for part in parts), initial=0))
    order = sorted(range(len(sequences)), key=sequences.__getitem__)
    for number, run in groupby(order, key=owners.__getitem__):
        yield parts[number].pick([at - starts[number] for at in run])
