"""The part of the output of running micro-batches that is delivered, and the part that a stream repeats.

A result is known by port, bucket, sequence and its place among the results of that sequence. The results of a bucket
for a port come in order of sequences, and a repeated micro-batch gives the same ones, however they are cut into frames.
So one number of each kind says which of them are delivered; a stream counts from where its micro-batch begins.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wallaroo.message.frame import Frame, encode_frame

Place = tuple[int, int]  # port and bucket
Mark = tuple[int, int]  # a sequence, and how many results of it


class OutOfOrderError(ValueError):
    """Results of a bucket do not come in order of their sequences."""


@dataclass(slots=True)
class StreamRun:
    """The messages of a stream until now.

    Attributes:
        marks: The last sequence of each place, and how many results of it came.
        letters: How many dead letters of each bucket and sequence came.
    """

    marks: dict[Place, Mark] = field(default_factory=dict)
    letters: dict[Mark, int] = field(default_factory=dict)

    def take(self, place: Place, sequences: Sequence[int], first: int, delivered: Mark) -> tuple[int, Mark]:
        """Count the messages of a frame.

        Args:
            place: Where they belong.
            sequences: Of the messages, less `first`.
            first: The sequence of the frame's header.
            delivered: The mark of the place.

        Returns:
            How many messages at the beginning of the frame are delivered; and, unless all are, the place's new mark.

        Raises:
            OutOfOrderError: They are not in order.
        """
        if not isinstance(sequences, range) and sorted(sequences) != list(sequences):
            reason = "a frame's sequences fall"
            raise OutOfOrderError(reason)
        begin, last = first + sequences[0], first + sequences[-1]
        latest, came = self.marks.get(place, (-1, 0))
        if begin < latest:
            reason = f"sequence {begin} comes after {latest}"
            raise OutOfOrderError(reason)
        of_last = len(sequences) - bisect_left(sequences, sequences[-1])
        self.marks[place] = mark = (last, of_last + (came if last == latest else 0))
        sequence, count = delivered
        low, high = bisect_left(sequences, sequence - first), bisect_right(sequences, sequence - first)
        before = came if sequence == latest else 0
        return low + min(max(count - before, 0), high - low), mark

    def forget_letters(self, sequence: int) -> None:
        """Forget dead letters of input before a sequence."""
        self.letters = since(self.letters, sequence)

    def take_letters(self, bucket: int, frame: Frame, delivered: Mapping[Mark, int]) -> tuple[bytes, int]:
        """Count the dead letters of a frame, which have no order.

        Args:
            frame: Has them.
            delivered: How many of each bucket and sequence are delivered.

        Returns:
            A frame of those that are not, and how many they are.
        """
        new: list[int] = []
        for index in range(frame.header.count):
            mark = (bucket, frame.sequence_of(index))
            self.letters[mark] = count = self.letters.get(mark, 0) + 1
            if count > delivered.get(mark, 0):
                new.append(index)
        if not new:
            return b"", 0
        values, header = frame.values(), frame.header
        sequences = [frame.sequence_of(index) for index in new]
        first = min(sequences)
        content = encode_frame(
            [values[index] for index in new],
            port=header.port,
            sequence=first,
            encoding=header.encoding,
            timestamp_ms=header.timestamp_ms,
            sequences=[sequence - first for sequence in sequences],
        )
        return content, len(new)


def since(letters: Mapping[Mark, int], sequence: int) -> dict[Mark, int]:
    """Return the counts of dead letters of a sequence or later ones."""
    return {mark: count for mark, count in letters.items() if mark[1] >= sequence}
