"""Finds the results that a task repeats after a failure in real-time mode, so that each result is delivered once.

A result is identified by port, bucket, sequence, and index among the results of that sequence. The results of a bucket
for a port come in order of sequences. A repeated micro-batch gives the same results, perhaps in other frames. So a mark
is enough to know which results are delivered: the last sequence, and the number of its delivered results. Each stream
counts from the beginning of its micro-batch.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wallaroo.message.frame import Frame, encode_frame

Place = tuple[int, int]  # port and bucket
Mark = tuple[int, int]  # a sequence and the number of its results; for dead letters, a bucket and a sequence


class OutOfOrderError(ValueError):
    """Results of a bucket do not come in order of their sequences."""


@dataclass(slots=True)
class StreamRun:
    """Counts the results and dead letters of one stream (call of `Deliver`), to find out which ones are repeated.

    Attributes:
        marks: Last sequence of each place, and the number of results of that sequence that came.
        letters: Number of dead letters that came, by bucket and sequence.
    """

    marks: dict[Place, Mark] = field(default_factory=dict)
    letters: dict[Mark, int] = field(default_factory=dict)

    def take(self, place: Place, sequences: Sequence[int], first: int, delivered: Mark) -> tuple[int, Mark]:
        """Count the results in a frame, and find the number of those that were delivered before.

        Args:
            place: Port and bucket of the messages.
            sequences: Sequences of the messages, minus `first`.
            first: Sequence of the frame's header.
            delivered: Mark of the results that are delivered for the place.

        Returns:
            Number of messages at the beginning of the frame that were delivered before, and the new mark of the place.
            Ignore this mark if all messages were delivered before.

        Raises:
            OutOfOrderError: The messages are not in order.
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
        """Forget dead letters of messages before number `sequence`: no task can repeat these."""
        self.letters = since(self.letters, sequence)

    def take_letters(self, bucket: int, frame: Frame, delivered: Mapping[Mark, int]) -> tuple[bytes, int]:
        """Count the dead letters in a frame, and select the new ones. Dead letters may come in any order.

        Args:
            frame: Frame with the dead letters.
            delivered: Number of delivered dead letters, by bucket and sequence.

        Returns:
            A frame with only the dead letters that were not delivered before, and their number.
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
    """Return the counts of the dead letters whose messages have this sequence or a later one."""
    return {mark: count for mark, count in letters.items() if mark[1] >= sequence}
