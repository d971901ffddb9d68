"""Runs the stages of a level for one bucket, one after the other, with its rows in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.crossing import Crossing

FIRST_OF_TABLE = -(1 << 31)  # ordinals of tables' frames begin here, before ticks and all other frames of sequence 0
TIME = slice(24, 32)  # bytes of the time in the header of a frame
FRAMES_PER_BUCKET = 1 << 16  # each bucket has this many ordinals for its outputs


class BucketRow(Protocol):
    """A frame on its way to a bucket."""

    @property
    def sequence(self) -> int:
        """Sequence of the frame."""

    @property
    def ordinal(self) -> int:
        """Number that orders frames of one sequence. A tick precedes the messages of its sequence."""

    @property
    def port(self) -> int:
        """Port of the frame."""

    @property
    def payload(self) -> bytes:
        """The frame."""


R = TypeVar("R", bound=BucketRow)
Run = Callable[[Stage, list[R], Crossing], Iterable[pb.Output]]


def in_order(rows: Iterable[R]) -> list[R]:
    """Return the rows of one bucket in the order in which they were made, since a shuffle returns them in any order.

    Frames of several tasks may have the same sequence and ordinal, and so may ticks and visits. Such frames are sorted
    by time and then by their bytes, so that a repeated micro-batch has the same order.
    """
    return sorted(rows, key=lambda row: (row.sequence, row.ordinal, _time_of(row.payload), row.payload))


def _time_of(frame: bytes) -> int:
    return int.from_bytes(frame[TIME], "little", signed=True)


def later_ports(plan: Plan) -> list[frozenset[int]]:
    """Return for each level the ports of frames that only later levels receive."""
    ports = [frozenset[int]().union(*(stage.entry_ports for stage in level)) for level in plan.levels]
    return [frozenset[int]().union(*ports[number + 1 :]) for number in range(len(ports))]


def run_bucket(
    stages: Sequence[Stage], bucket: int, rows: Sequence[R], *, batch: int, run: Run[R]
) -> Iterator[tuple[int, pb.Output]]:
    """Run the stages of a level on the rows of one bucket.

    Args:
        stages: The stages of the level, in the order in which they run.
        rows: The rows of the bucket, see `in_order`.
        run: Runs one stage on its rows, and on the frames that earlier stages have sent to it.

    Yields:
        The ordinal of each output that leaves the bucket, and the output.

    Raises:
        RunError: I902 if a stage has not taken all messages that were sent to it.
    """
    crossing, ordinal = Crossing(stages), bucket * FRAMES_PER_BUCKET
    for stage in stages:
        mine = [row for row in rows if row.port in stage.entry_ports]
        for output in crossing.keep(run(stage, mine, crossing)):
            yield ordinal, output
            ordinal += 1
    crossing.check(batch)
