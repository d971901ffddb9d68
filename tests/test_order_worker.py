"""Frames that overlap, over a worker's socket: results are those of the messages one after the other, by sequence."""

import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from conformance.application import BUCKETS
from conformance.process import Worker
from conformance.session import Answer, BucketStore, StateStream, process
from support.run import TESTS
from wallaroo.message.frame import encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.program.build import build
from wallaroo_runtime.storage.state_log import entries_of, latest_states

pytestmark = pytest.mark.slow
FOLDER = TESTS / "conformance" / "order"
STAGES = count(1)
SINKS = (6, 7)


@pytest.fixture(scope="module", params=["python", "go"])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    command = [sys.executable, "-m", "wallaroo.worker", str(FOLDER / "app.py")]
    if request.param == "go":
        command = [str(build(FOLDER))]
    args = ["--in", "127.0.0.1:7010,127.0.0.1:7011", "--out", "127.0.0.1:7002"]
    with Worker(shlex.join(command), args=args) as started:
        yield started.ready()


class Event(NamedTuple):
    """A message of a source; its sequence says when it comes."""

    sequence: int
    origin: int
    key: str
    number: int

    def payload(self) -> bytes:
        return f"{self.key} {self.number}".encode()


class Trails:
    """What the states of one name make of messages one after the other: the reference."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))

    def follow(self, event: Event, key: str) -> Event | None:
        count, total = self.found[key]
        if event.number == 13:
            return None
        count, total = self.found[key] = count + 1, (total * 31 + event.number + 7 * event.origin) % 1_000_003
        return event._replace(key=f"{event.key}.{count}.{total}")


def stages() -> tuple[pb.Stage, pb.Stage, pb.Stage]:
    """Return the three stages of the application, under new names: no state is there."""

    def stage(*nodes: pb.Node) -> pb.Stage:
        return pb.Stage(id=f"s{next(STAGES)}", nodes=nodes, bucket_count=BUCKETS, frame_bytes=1 << 20)

    def key(pipeline: int, step: int, source: str) -> pb.Node:
        inputs = [f"{pipeline}/{source}"]
        return pb.Node(
            path=f"{pipeline}/steps/{step}", kind=pb.NODE_KIND_KEY, port=2 + 2 * step + pipeline, inputs=inputs
        )

    def state(pipeline: int, step: int) -> pb.Node:
        path, name, port = f"{pipeline}/steps/{step}", ("first trail", "second trail")[step], 2 + 2 * step
        return pb.Node(
            path=path, kind=pb.NODE_KIND_STATE_COMPUTATION, port=port + pipeline, state=name, state_port=port
        )

    both = range(2)
    sources = [pb.Node(path=f"{at}/sources/0", kind=pb.NODE_KIND_SOURCE, port=at) for at in both]
    sinks = [
        pb.Node(path=f"{at}/sinks/0", kind=pb.NODE_KIND_SINK, port=SINKS[at], inputs=[f"{at}/steps/1"]) for at in both
    ]
    return (
        stage(*sources, *(key(at, 0, "sources/0") for at in both)),
        stage(*(state(at, 0) for at in both), *(key(at, 1, "steps/0") for at in both)),
        stage(*(state(at, 1) for at in both), *sinks),
    )


@dataclass
class Level:
    """A stage with state: calls of its buckets, whose messages come as the draws say."""

    worker: Worker
    stage: pb.Stage
    draw: Callable[[Any], Any]
    stores: dict[int, BucketStore] = field(default_factory=dict)

    def run(self, frames: dict[int, list[bytes]]) -> tuple[list[Answer], set[int]]:
        """Run a call for each bucket; returns the answers, and the sequences of messages that were skipped."""
        answers, skipped = [], set[int]()
        for bucket, mine in frames.items():
            mine = self.draw(some.permutations(mine))
            store = self.stores.setdefault(bucket, BucketStore(bucket))
            if store.counter and self.draw(some.booleans()):
                self.sort_log(store)
            sequences = [frame.sequence_of(at) for frame in map(read_frame, mine) for at in range(frame.header.count)]
            skips = self.draw(some.sets(some.integers(0, 40), max_size=2))
            skipped |= {sequences[at] for at in skips if at < len(sequences)}
            answers.append(self.call(store, mine, [pb.Skip(ordinal=at, code="C508", reason="no") for at in skips]))
            store.commit(answers[-1])
        return answers, skipped

    @staticmethod
    def sort_log(store: BucketStore) -> None:
        """Write the log as a rescale does, without the worker; nobody has a copy of the version that it then is."""
        store.nonce ^= 1 << 63
        store.log = [*entries_of(latest_states(store.log))]

    def call(self, store: BucketStore, frames: Sequence[bytes], skips: list[pb.Skip]) -> Answer:
        """Make one call, of one request or of several."""
        pieces = [b"".join(frames)] if self.draw(some.booleans()) else list(frames)
        version = pb.Version(counter=store.counter, nonce=store.nonce)
        careful = self.draw(some.integers(0, 4)) == 0
        with StateStream(self.worker, self.stage, store.bucket) as stream:
            for number, piece in enumerate(pieces):
                bucket = pb.Bucket(bucket=store.bucket, version=version, frames=piece, careful=careful)
                bucket.more = number + 1 < len(pieces)
                bucket.skips.extend([] if number else skips)
                stream.send(bucket=bucket)
            return stream.answer(store)


def joined(answers: Sequence[Answer]) -> dict[int, list[bytes]]:
    """Return the frames of several calls by bucket."""
    frames: dict[int, list[bytes]] = defaultdict(list)
    for answer in answers:
        for bucket, some_frames in answer.frames.items():
            frames[bucket] += some_frames
    return frames


def cut(draw: Callable[[Any], Any], events: Sequence[Event]) -> Iterator[bytes]:
    """Yield frames of the sources; most hold what came in order, few do not."""
    for origin in range(2):
        left = [event for event in events if event.origin == origin]
        while left:
            size = draw(some.integers(1, 8))
            part, left = left[:size], left[size:]
            if draw(some.integers(0, 3)) == 0:
                part = draw(some.permutations(part))
            first = min(event.sequence for event in part)
            payloads = [event.payload() for event in part]
            yield encode_frame(
                payloads, port=origin, sequence=first, sequences=[event.sequence - first for event in part]
            )


events = some.lists(
    some.tuples(some.integers(1, 3), some.integers(0, 1), some.sampled_from("abcdefgh"), some.integers(0, 15)),
    max_size=40,
)


def test_overlapping_frames_give_what_the_messages_in_order_give(worker: Worker) -> None:
    @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(batches=some.lists(events, max_size=3), data=some.data())
    def holds(batches: list[list[tuple[int, int, str, int]]], data: some.DataObject) -> None:
        check(worker, batches, data.draw)

    holds()


def check(worker: Worker, batches: list[list[tuple[int, int, str, int]]], draw: Callable[[Any], Any]) -> None:
    first, second, third = stages()
    levels = Level(worker, second, draw), Level(worker, third, draw)
    trails, now = (Trails(), Trails()), 0
    for batch in batches:
        events = []
        for gap, *rest in batch:
            now += gap
            events.append(Event(now, *rest))
        sent = list(cut(draw, events))
        frames = joined(process(worker, first, sent))
        for number, (level, trail) in enumerate(zip(levels, trails, strict=True)):
            answers, skipped = level.run(frames)
            entered = [event for event in events if event.sequence not in skipped]
            results = [trail.follow(event, str(event.number % 3) if number else event.key) for event in entered]
            dead = {event.sequence: "C508" for event in events if event.sequence in skipped}
            dead |= {at.sequence: "C501" for at, made in zip(entered, results, strict=True) if made is None}
            found = {letter.sequence: letter.code for answer in answers for letter in answer.letters}
            assert found == dead
            events = [made for made in results if made is not None]
            frames = joined(answers)
        lines = sorted(line for answer in answers for port in SINKS for line in answer.texts(port))
        assert lines == [(event.sequence, f"{event.key} {event.number} {event.origin}") for event in events]
