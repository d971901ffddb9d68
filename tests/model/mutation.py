"""Faults planted in the runtime and in Python workers, which drawn applications must find.

Each is one line of the product that does something else, put in by `planted` for as long as a test needs it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count, islice
from typing import Any
from unittest.mock import patch

from model import local
from model.nursery import WORKER_FAULT
from wallaroo.frame import DEAD_LETTER_PORT, encode_frame, read_frame, split_frames
from wallaroo_runtime.spark import publish, stage, state
from wallaroo_runtime.spark.crossing import Handover
from wallaroo_runtime.spark.level import Level
from wallaroo_runtime.worker.session import StateSession

Planted = tuple[Any, str, Any]


def _unordered() -> Planted:
    """Frames of a bucket run in the order in which the shuffle gives them."""
    return state, "sorted", lambda rows, key: list(rows)


def _cut() -> Planted:
    """The runtime makes frames of single messages of those for a bucket, which only a worker can read.

    So it did once, and lost nearly all messages of structures of Go programs.
    """
    real = StateSession.run_bucket

    def run_bucket(self: StateSession, bucket: int, version: Any, frames: Any, *rest: Any) -> Any:
        return real(self, bucket, version, [one for data in frames for one in _singles(data)], *rest)

    return StateSession, "run_bucket", run_bucket


def _singles(data: bytes) -> Iterator[bytes]:
    frame = read_frame(data)
    if not frame.header.count:
        yield data
    for at, value in enumerate(frame.values()):
        yield encode_frame(
            [value],
            port=frame.header.port,
            sequence=frame.sequence_of(at),
            encoding=frame.header.encoding,
            timestamp_ms=frame.header.timestamp_ms,
            keys=[frame.keys[frame.key_indexes[at]]],
            key_indexes=[0],
            timestamps=frame.timestamps[at : at + 1],
        )


def _lost_letter() -> Planted:
    """A file with one dead letter is not published."""
    real = publish.longest

    def longest(files: Any) -> Any:
        return [file for file in real(files) if file.port != DEAD_LETTER_PORT or file.messages > 1]

    return publish, "longest", longest


def _wrong_bucket() -> Planted:
    """Every third frame goes to the bucket next to its own."""
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


def _lost_ticks() -> Planted:
    """Ticks reach one bucket only."""
    real = stage.StatelessLevel._tick_rows
    return stage.StatelessLevel, "_tick_rows", lambda self, tick: islice(real(self, tick), 1)


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
    "frames cut": _cut,
    "a lost dead letter": _lost_letter,
    "a wrong bucket": _wrong_bucket,
    "twice at a shuffle": _twice_at_shuffle,
    "twice at a crossing": _twice_at_crossing,
    "lost ticks": _lost_ticks,
    "lost at a border": _lost_at_border,
    "a lost delta": _lost_delta,
    "deltas replace": _deltas_replace,
}

# What is planted in Python workers when they are forked: module, attribute, value.
WORKER: dict[str, tuple[str, str, Any]] = {
    "frames overlap": ("wallaroo.worker.bucket", "is_in_order", lambda places: True),
    "state of a failure": ("wallaroo.worker.bucket", "BucketRun._put_back", staticmethod(lambda *_: None)),
}
FAULTS = (*RUNTIME, *WORKER)


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a fault for a while."""
    if name in WORKER:
        with patch.dict(os.environ, {WORKER_FAULT: name}):
            yield
        return
    target, attribute, fault = RUNTIME[name]()
    with patch.object(target, attribute, fault, create=attribute == "sorted"):
        yield


def plant_in_worker(name: str) -> None:
    """Plant a fault in this process, a worker, for good."""
    module, path, fault = WORKER[name]
    target: Any = import_module(module)
    *outer, attribute = path.split(".")
    for each in outer:
        target = getattr(target, each)
    setattr(target, attribute, fault)
