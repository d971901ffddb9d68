"""Faults planted in the runtime, which drawn applications must find.

Each is one line of the product that does something else, put in by `planted` for as long as a test needs it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

from model import local
from wallaroo.frame import DEAD_LETTER_PORT, split_frames
from wallaroo_runtime.spark import publish, stage, state
from wallaroo_runtime.spark.handover import Handover
from wallaroo_runtime.spark.level import Level

Planted = tuple[Any, str, Any]


def _unordered() -> Planted:
    """Frames of a bucket run in the order in which the shuffle gives them."""
    return state, "sorted", lambda rows, key: list(rows)


def _overlapping() -> Planted:
    """Frames that overlap are not put in order of arrival."""
    return state, "in_order_of_arrival", list


def _lost_letter() -> Planted:
    """A file with one dead letter is not published."""
    real = publish.longest

    def longest(files: Any) -> Any:
        return [file for file in real(files) if file.port != DEAD_LETTER_PORT or file.messages > 1]

    return publish, "longest", longest


def _wrong_bucket() -> Planted:
    """Every third frame goes to the bucket beside its own."""
    real, numbers = Level.column_of, count()

    def column_of(self: Level, bucket: int, port: int) -> int:
        is_wrong = bucket >= 0 and next(numbers) % 3 == 2
        return real(self, (bucket + 1) % len(self.bucket_ids) if is_wrong else bucket, port)

    return Level, "column_of", column_of


def _twice_at_shuffle() -> Planted:
    """Every fourth frame goes into the shuffle twice."""
    real, numbers = stage.frame_batch, count()
    return stage, "frame_batch", lambda rows: real([*rows, *(rows[:1] if next(numbers) % 4 == 3 else ())])


def _twice_at_crossing() -> Planted:
    """What passes to the other program passes twice."""
    real = Handover.take
    return Handover, "take", lambda self, of: [frame for frame in real(self, of) for _ in range(2)]


def _no_ticks() -> Planted:
    """Ticks reach no bucket."""
    return stage.StatelessLevel, "_tick_rows", lambda self, tick: iter(())


def _lost_at_border() -> Planted:
    """The last frame of a range of several is not read."""
    real = Level.read

    def read(self: Level, *place: Any) -> Iterator[bytes]:
        for data in real(self, *place):
            ends = [end for _, _, end in split_frames(data)]
            yield data[: ends[-2]] if len(ends) > 1 else data

    return Level, "read", read


def _lost_delta() -> Planted:
    """Changes of a state that has some already are not written."""
    return local.Value, "appendList", lambda self, rows: None


def _deltas_replace() -> Planted:
    """Changes of a state replace all that was written before."""
    return local.Value, "appendList", local.Value.update


RUNTIME: dict[str, Callable[[], Planted]] = {
    "rows unordered": _unordered,
    "frames overlap": _overlapping,
    "a lost dead letter": _lost_letter,
    "a wrong bucket": _wrong_bucket,
    "twice at a shuffle": _twice_at_shuffle,
    "twice at a crossing": _twice_at_crossing,
    "no ticks": _no_ticks,
    "lost at a border": _lost_at_border,
    "a lost delta": _lost_delta,
    "deltas replace": _deltas_replace,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a fault for a while."""
    target, attribute, fault = RUNTIME[name]()
    with patch.object(target, attribute, fault, create=attribute == "sorted"):
        yield
