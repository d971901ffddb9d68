"""The windows of a worker of each language, over its socket, against the plain reference; it loses copies at times."""

import json
import random
import shlex
import struct
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from window_history import cut, histories, reference

from conformance.process import Worker
from conformance.session import BucketStore, StateStream
from support.run import TESTS
from wallaroo.message.frame import PLAIN
from wallaroo.worker._proto import worker_pb2 as pb

pytestmark = pytest.mark.slow
FOLDER = TESTS / "conformance"
PORT, SINK = 50, 90
LATE = ("drop", "fire_per_message", "place_in_oldest_window")
CALLS = count(1)


def some_windows(seed: int) -> list[dict[str, Any]]:
    """Return windows of every late policy and kind of time, and count windows, of sizes that a seed gives."""
    source = random.Random(seed)
    found: list[dict[str, Any]] = [{"kind": "count", "count": size, "flush_ms": 5000} for size in (1, 3)]
    for late in LATE:
        for time in ("ingest", "event"):
            for _ in range(2):
                size = source.randint(1, 24)
                slide, delay = source.randint(1, size), source.choice((0, 0, 1, 30))
                rest = {"delay_ms": delay, "late": late, "time": time}
                found.append({"kind": "range", "range_ms": size, "slide_ms": slide, **rest})
                found.append({"kind": "session", "gap_ms": size, **rest})
    return found


WINDOWS = some_windows(5)


@pytest.fixture(scope="module", params=["python", "go"])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    command = [sys.executable, "-m", "wallaroo.worker", str(FOLDER / "app.py")]
    if request.param == "go":
        command = [str(request.getfixturevalue("go_conformance"))]
    args = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002", "--windows", json.dumps(WINDOWS)]
    with Worker(shlex.join(command), args=args) as started:
        yield started.ready()


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.long)])
def test_windows_of_a_worker_are_those_of_the_reference(worker: Worker, count: int) -> None:
    @settings(max_examples=count, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(number=some.integers(0, len(WINDOWS) - 1), events=histories(), data=some.data())
    def holds(number: int, events: list[dict[str, Any]], data: some.DataObject) -> None:
        check(worker, number, events, data)

    holds()


def encode(values: Sequence[int]) -> tuple[int, list[bytes]]:
    """Return values in the codec int64, as messages of another worker's key step."""
    return PLAIN, [struct.pack(">q", value) for value in values]


def stage(number: int, *, has_watermarks: bool) -> pb.Stage:
    path = f"0/steps/{2 * number + 1}"
    window = pb.Node(
        path=path, kind=pb.NODE_KIND_WINDOW, port=PORT, state=f"s{number}", state_port=PORT, codec="int64",
        counters=["dropped_late"], watermarks=has_watermarks,
    )  # fmt: skip
    sink = pb.Node(path="0/sinks/0", kind=pb.NODE_KIND_SINK, port=SINK, inputs=[path])
    return pb.Stage(id=f"s{next(CALLS)}", nodes=[window, sink], bucket_count=8, frame_bytes=1 << 20)


def check(worker: Worker, number: int, events: list[dict[str, Any]], data: some.DataObject) -> None:
    has_watermarks = data.draw(some.booleans())
    wanted = reference(WINDOWS[number], events, has_watermarks=has_watermarks)
    store, description = BucketStore(0), stage(number, has_watermarks=has_watermarks)
    given_out: list[tuple[int, str]] = []
    dead: list[tuple[int, str, str]] = []
    left, keys = events, 0
    while left:
        size = data.draw(some.sampled_from((1, 2, 7, 100)))
        part, left = left[:size], left[size:]
        if store.counter and data.draw(some.booleans()):
            store.nonce ^= 1 << 63  # a version that the worker does not hold: it was restarted, or the bucket evicted
        with StateStream(worker, description, 0) as stream:
            pieces = cut(data.draw, part, encode, PORT)
            stream.ask(store, pieces, snapshot=data.draw(some.booleans()))
            answer = stream.answer(store)
        store.commit(answer)
        given_out += answer.texts(SINK)
        dead += [(letter.sequence, letter.key.decode(), letter.code) for letter in answer.letters]
        keys = answer.done.keys
    assert given_out == [
        (each.sequence, " ".join((each.key, *map(str, each.values)))) for each in wanted.given if not each.code
    ]
    assert sorted(dead) == sorted((each.sequence, each.key, each.code) for each in wanted.given if each.code)
    assert keys == len(wanted.keys)
