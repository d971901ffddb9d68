"""Visits among messages, in micro-batches and tasks of any size, over two levels, against a reference in memory."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.visited.app import VISITS, application_setup
from support.visits import Event, Reference
from wallaroo.message.frame import FRAMED, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.state_cache import StateCache
from wallaroo_runtime.memory.engine import BatchResult, Engine
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.source_frame import visit_frame
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.worker.step_count import add_up

KEYS = "abcde"
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
    run = start(application_setup, ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"], check_persist=False)
    yield run
    run.close()


@settings(deadline=None, max_examples=40)
@given(st.data(), st.lists(st.one_of(messages, messages, visits), max_size=30), st.randoms(use_true_random=False))
def test_visits_among_messages(app: MemoryRun, data: st.DataObject, events: list[Event], source: Any) -> None:
    port, sink = app.plan.ports["0/sources/0"], app.plan.ports["0/sinks/0"]
    # With no room for copies each bucket call reads its state from the log.
    app._clients["main"].calls._cache = StateCache(data.draw(st.sampled_from((0, 1 << 20))))  # type: ignore[attr-defined]
    engine = Engine(app.plan, app._clients, ErrorPolicy.of(app.topology, ""), shuffle=source.shuffle)
    reference, whole, at = Reference(), BatchResult(), 0
    while at < len(events):
        count = data.draw(st.integers(1, len(events) - at))
        border = data.draw(st.integers(0, count))
        frames = [frame_of(events[number], number, port) for number in range(at, at + count)]
        batch = engine.run([[b"".join(frames[:border])], [b"".join(frames[border:])]])
        whole.letters += batch.letters
        whole.frames[sink] += batch.frames[sink]
        add_up(whole.visits, batch.visits)
        at += count
    for sequence, event in enumerate(events):
        reference.take(event, sequence)
    given: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for frame in map(read_frame, whole.frames[sink]):
        for number, value in enumerate(frame.values()):
            text = bytes(value).decode().removesuffix("\n")
            given[text[0]].append((frame.sequence_of(number), text))
    assert {key: [text for _, text in found] for key, found in given.items()} == reference.given
    letters = [pb.DeadLetter.FromString(value) for frame in whole.letters for value in read_frame(frame).values()]
    assert sorted((letter.key.decode(), letter.sequence) for letter in letters) == sorted(reference.letters)
    counted = [(count["keys"], count["failed"]) for _, count in sorted(whole.visits.items())]
    assert counted == reference.visited
