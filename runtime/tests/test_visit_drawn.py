"""Visits among messages, in micro-batches and tasks of any size, over two levels, against a reference in memory."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallaroo
from wallaroo.frame import FRAMED, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.state import StateCache
from wallaroo_runtime.lowering.error_policy import ErrorPolicy
from wallaroo_runtime.lowering.visit import add_visits
from wallaroo_runtime.memory.engine import Batch, Engine
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.source_frame import visit_frame
from wallaroo_runtime.memory.start import start

KEYS, VISITS = "abcde", ("add", "show", "odd", "boom", "both")
Event = tuple[str, str]  # a key and a value, or a visit and its metadata


class Numbers:
    """The state of a key: what it got."""

    def __init__(self) -> None:
        self.values: list[int] = []


class First:
    """Keeps numbers; passes on what a visit shows."""

    visits = VISITS

    def name(self) -> str:
        return "first"

    def compute_multi(self, message: list[str], state: Numbers) -> Any:
        if message[1] == "peek":  # leaves a key without state as it is
            return [], False
        state.values.append(int(message[1]))
        return [f"{message[0]} got {message[1]}"], True

    def visit(self, name: str, metadata: bytes, key: str, state: Numbers) -> Any:
        shown = f"{key} {name} {state.values}"
        if name == "show":
            return [shown], False
        state.values.append(int(metadata))
        if name == "boom" and sum(state.values) % 3 == 0:
            raise ValueError(shown)
        if name == "odd" and len(state.values) % 2:
            return wallaroo.Deleted([shown, shown])
        return [shown], True


class Second:
    """Counts what comes from the first step, and is visited too."""

    visits = ("both",)

    def name(self) -> str:
        return "second"

    def compute(self, text: str, state: Numbers) -> Any:
        state.values.append(1)
        return f"{text} {len(state.values)}", True

    def visit(self, name: str, metadata: bytes, key: str, state: Numbers) -> Any:
        state.values.append(1)
        return f"{key} second {len(state.values)}", True


@wallaroo.partition
def key_of(message: Any) -> str:
    return str(message[0])


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data: bytes) -> list[str]:
    return data.decode().split("=")


@wallaroo.encoder
def encode(text: str) -> bytes:
    return text.encode()


def application(args: list[str]) -> wallaroo.Application:
    builder = wallaroo.ApplicationBuilder("visits")
    builder.new_pipeline("main", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode))
    builder.to_state_partition(First(), Numbers, "first", key_of)
    builder.to_state_partition(Second(), Numbers, "second", key_of)
    builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    return builder.build()


class Reference:
    """What must come of events, one after the other."""

    def __init__(self) -> None:
        self.first: dict[str, list[int]] = {}
        self.second: defaultdict[str, list[int]] = defaultdict(list)
        self.given: defaultdict[str, list[str]] = defaultdict(list)
        self.letters: list[tuple[str, int]] = []
        self.visited: list[tuple[int, int]] = []

    def _pass(self, key: str, text: str) -> None:
        self.second[key].append(1)
        self.given[key].append(f"{text} {len(self.second[key])}")

    def message(self, key: str, value: str) -> None:
        if value != "peek":
            self.first.setdefault(key, []).append(int(value))
            self._pass(key, f"{key} got {value}")

    def visit(self, name: str, metadata: str, sequence: int) -> None:
        count, failed = len(self.first), 0
        if name == "both":  # comes to the second step before what the first one makes of it
            count += len(self.second)
            for key in sorted(self.second):
                self.second[key].append(1)
                self.given[key].append(f"{key} second {len(self.second[key])}")
        for key in sorted(self.first):
            values = self.first[key]
            shown = f"{key} {name} {values}"
            if name == "show":
                self._pass(key, shown)
                continue
            after = [*values, int(metadata)]
            if name == "boom" and sum(after) % 3 == 0:
                failed += 1
                self.letters.append((key, sequence))
                continue
            self.first[key] = after
            self._pass(key, shown)
            if name == "odd" and len(after) % 2:
                self._pass(key, shown)
                del self.first[key]
        self.visited.append((count, failed))


messages = st.tuples(st.sampled_from(KEYS), st.sampled_from(("1", "2", "3", "peek")))
visits = st.tuples(st.sampled_from(VISITS), st.sampled_from(("1", "2", "5")))


def frame_of(event: Event, sequence: int, port: int) -> bytes:
    name, value = event
    if name in VISITS:
        return visit_frame(sequence, 0, pb.Visit(id=sequence, name=name, metadata=value.encode()))
    payload = f"{name}={value}".encode()
    return write_frame(FrameHeader(port, 1, sequence, 0, FRAMED, 0), [len(payload).to_bytes(4, "big"), payload])


@pytest.fixture(scope="module")
def app() -> Iterator[MemoryRun]:
    """Give the application; its worker serves many engines."""
    run = start(application, [], check_persist=False)
    yield run
    run.close()


@settings(deadline=None, max_examples=40)
@given(st.data(), st.lists(st.one_of(messages, messages, visits), max_size=30), st.randoms(use_true_random=False))
def test_visits_among_messages(app: MemoryRun, data: st.DataObject, events: list[Event], source: Any) -> None:
    port, sink = app.plan.ports["0/sources/0"], app.plan.ports["0/sinks/0"]
    # With no room for copies each bucket call reads its state from the log.
    app._channels["main"].calls._cache = StateCache(data.draw(st.sampled_from((0, 1 << 20))))  # type: ignore[attr-defined]
    engine = Engine(app.plan, app._channels, ErrorPolicy.of(app.topology, ""), shuffle=source.shuffle)
    reference, whole, at = Reference(), Batch(), 0
    while at < len(events):
        count = data.draw(st.integers(1, len(events) - at))
        border = data.draw(st.integers(0, count))
        frames = [frame_of(events[number], number, port) for number in range(at, at + count)]
        batch = engine.run([[b"".join(frames[:border])], [b"".join(frames[border:])]])
        whole.letters += batch.letters
        whole.frames[sink] += batch.frames[sink]
        add_visits(whole.visits, batch.visits)
        at += count
    for sequence, (name, value) in enumerate(events):
        if name in VISITS:
            reference.visit(name, value, sequence)
        else:
            reference.message(name, value)
    given: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for frame in map(read_frame, whole.frames[sink]):
        for number, value in enumerate(frame.values()):
            text = bytes(value).decode()
            given[text[0]].append((frame.sequence_of(number), text))
    assert {key: [text for _, text in found] for key, found in given.items()} == reference.given
    letters = [pb.DeadLetter.FromString(value) for frame in whole.letters for value in read_frame(frame).values()]
    assert sorted((letter.key.decode(), letter.sequence) for letter in letters) == sorted(reference.letters)
    counted = [(count.keys, count.failed) for _, count in sorted(whole.visits.items())]
    assert counted == reference.visited
