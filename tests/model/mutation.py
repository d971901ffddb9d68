"""Faults planted in the runtime and in Python workers, which drawn applications must find.

Each is one line of the product that does something else, put in by `planted` for as long as a test needs it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import count
from typing import Any
from unittest.mock import patch

from model.nursery import WORKER_FAULT
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame, read_frame, split_frames
from wallaroo_runtime.memory import BatchResult, Engine, engine
from wallaroo_runtime.memory.calls import StateSession
from wallaroo_runtime.memory.crossing import Crossing
from wallaroo_runtime.memory.engine import FrameRow
from wallaroo_runtime.memory.store import BucketLog
from wallaroo_runtime.storage.journal.reader import JournalReader

Planted = tuple[Any, str, Any]


def _unordered() -> Planted:
    """Frames of a bucket run in the order in which the shuffle gives them."""
    return engine, "in_order", list


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
    """A frame with one dead letter is not kept."""
    real = BatchResult.take

    def take(self: BatchResult, output: Any) -> None:
        if output.port != DEAD_LETTER_PORT or read_frame(output.frame).header.count > 1:
            real(self, output)

    return BatchResult, "take", take


def _wrong_bucket() -> Planted:
    """Every third frame goes to the bucket next to its own."""
    real, numbers = Engine._to_bucket, count()

    def to_bucket(self: Engine, output: Any, *rest: Any) -> Iterator[FrameRow]:
        for row in real(self, output, *rest):
            bucket = (row.bucket + 1) % self.plan.bucket_count if next(numbers) % 3 == 2 else row.bucket
            yield replace(row, bucket=bucket)

    return Engine, "_to_bucket", to_bucket


def _twice_at_shuffle() -> Planted:
    """Every fourth frame goes into the shuffle twice."""
    real, numbers = Engine._to_bucket, count()

    def to_bucket(self: Engine, *given: Any) -> Iterator[FrameRow]:
        for row in real(self, *given):
            yield from [row] * (2 if next(numbers) % 4 == 3 else 1)

    return Engine, "_to_bucket", to_bucket


def _twice_at_crossing() -> Planted:
    """What passes to the other program passes twice."""
    real = Crossing.take
    return Crossing, "take", lambda self, of: [frame for frame in real(self, of) for _ in range(2)]


def _lost_ticks() -> Planted:
    """Ticks reach one bucket only."""
    real = Engine._controls
    return Engine, "_controls", lambda self, *given: (row for row in real(self, *given) if not row.bucket)


def _lost_at_border() -> Planted:
    """The last frame of a range of several is not read."""
    real = JournalReader.read

    def read(self: JournalReader, *place: Any) -> Iterator[bytes]:
        for data in real(self, *place):
            ends = [end for _, _, end in split_frames(data)]
            yield data[: ends[-2]] if len(ends) > 1 else data

    return JournalReader, "read", read


def _lost_delta() -> Planted:
    """Changes of a state that has some already are not written."""
    real = BucketLog.after

    def after(self: BucketLog, result: Any) -> BucketLog:
        found = real(self, result)
        return found if result.is_snapshot or not self.entries else replace(found, entries=self.entries)

    return BucketLog, "after", after


def _deltas_replace() -> Planted:
    """Changes of a state replace all that was written before."""
    real = BucketLog.after
    return BucketLog, "after", lambda self, result: replace(real(self, result), entries=tuple(result.changes))


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

# What is planted in Python workers, of this process and others: module, attribute, value.
WORKER: dict[str, tuple[str, str, Any]] = {
    "frames overlap": ("wallaroo.worker.bucket.bucket", "is_in_order", lambda places: True),
    "state of a failure": ("wallaroo.worker.bucket.bucket", "BucketRun._put_back", staticmethod(lambda *_: None)),
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


@contextmanager
def planted_in_worker() -> Iterator[None]:
    """Let this process be a worker with the fault that is planted, if one is."""
    name = os.environ.get(WORKER_FAULT)
    if name is None:
        yield
        return
    target, attribute, fault = _in_worker(name)
    with patch.object(target, attribute, fault):
        yield


def plant_in_worker(name: str) -> None:
    """Plant a fault in this process, a worker, for good."""
    setattr(*_in_worker(name))


def _in_worker(name: str) -> Planted:
    module, path, fault = WORKER[name]
    target: Any = import_module(module)
    *outer, attribute = path.split(".")
    for each in outer:
        target = getattr(target, each)
    return target, attribute, fault
