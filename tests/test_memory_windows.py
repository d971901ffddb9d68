"""The window vectors through the engine in memory, from wire bytes to the sink, in both languages."""

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as some
from window_history import FAILS, reference, windows

from conformance.application import VECTOR_WINDOWS, WINDOW_CASES
from support.run import TESTS
from wallaroo import testing
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.frame import DEAD_LETTER_PORT, FRAMED, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.memory import BatchResult, Engine, MemoryRun, start
from wallaroo_runtime.memory.source_frame import tick_frame
from wallaroo_runtime.memory.store import read_states
from wallaroo_runtime.topology.error_policy import ErrorPolicy

ARGS = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002", "--windows", json.dumps(VECTOR_WINDOWS)]
Event = dict[str, Any]


@pytest.fixture(scope="module", params=["app.py", pytest.param("", marks=pytest.mark.slow)], ids=["python", "go"])
def app(request: pytest.FixtureRequest) -> Iterator[MemoryRun]:
    """Start the application of a language, with a window for each of the vectors."""
    run = start(str(TESTS / "vector" / request.param), ARGS)
    yield run
    run.close()


def frame_of(event: Event, port: int) -> bytes:
    """Return the frame that the gateway would write."""
    if "tick" in event:
        return tick_frame(event["sequence"], event["tick"])
    payload = f"{event['key']} {event['time']} {event['value']}".encode()
    head = FrameHeader(port, 1, event["sequence"], 0, FRAMED, event["time"])
    return write_frame(head, [struct.pack(">I", len(payload)), payload])


def given(batch: BatchResult) -> Iterator[tuple[int, str]]:
    """Yield sequence and text of what the sink got."""
    for frame in (read_frame(data) for frames in batch.frames.values() for data in frames):
        yield from ((frame.sequence_of(at), value.decode()) for at, value in enumerate(frame.values()))


def dead(batch: BatchResult) -> Iterator[tuple[int, str, str]]:
    """Yield sequence, key and code of the dead letters."""
    for frame in map(read_frame, batch.letters):
        assert frame.header.port == DEAD_LETTER_PORT
        for letter in map(pb.DeadLetter.FromString, frame.values()):
            yield letter.sequence, letter.key.decode(), letter.code


def check(app: MemoryRun, case: Event, batches: Sequence[Sequence[Event]]) -> None:
    """Run the events in micro-batches; buckets give their output in any order, the keys of one keep theirs."""
    number = VECTOR_WINDOWS.index(case["window"])
    port = app.plan.ports[app.source(f"in{number}").path]
    engine = Engine(app.plan, app._clients, ErrorPolicy.of(app.topology))
    done = [engine.run([[frame_of(event, port) for event in events]]) for events in batches]
    outputs = [(each["sequence"], " ".join((each["key"], *map(str, each["values"])))) for each in case["outputs"]]
    letters = [(each["sequence"], each["key"], each["code"]) for each in case["dead_letters"]]

    def by_key(item: tuple[int, str]) -> str:
        return item[1].partition(" ")[0]

    assert sorted((each for batch in done for each in given(batch)), key=by_key) == sorted(outputs, key=by_key)
    assert sorted(each for batch in done for each in dead(batch)) == sorted(letters)
    assert len(read_states(app.plan, engine.store, f"values {number}")) == len(case["keys"])


@pytest.mark.parametrize("case", WINDOW_CASES, ids=[case["name"] for case in WINDOW_CASES])
def test_vector(app: MemoryRun, case: Event) -> None:
    check(app, case, [case["events"]])
    if not case["is_one_call"]:
        check(app, case, [[event] for event in case["events"]])


SPANS = (0, 1, 7, 30, 99, 100, 101, 250, 1000, 5000, 20_000)


@some.composite
def moves(draw: some.DrawFn) -> list[tuple[str, Any]]:
    """Draw what a test does: it sends a message, whose time may be another one than the clock's, or lets time pass."""
    times = some.sampled_from((0, 0, 0, -1, -20, -300, 15, 400))
    message = some.tuples(some.sampled_from("aab"), times, some.sampled_from((1, 2, 3, *FAILS)))
    send, advance = some.tuples(some.just("send"), message), some.tuples(some.just("advance"), some.sampled_from(SPANS))
    return draw(some.lists(some.one_of(send, send, advance), max_size=25))


@settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@drawn(window=windows(), done=moves())
def test_the_kit_closes_windows_as_a_gateway_does(window: Event, done: list[tuple[str, Any]]) -> None:
    """The reference gets each tick that a gateway would send while time passes, however long that is at once."""
    window["flush_ms"] = 5000  # the SDK's
    interval = max(100, min(1000, window.get("slide_ms", window.get("gap_ms", 5000)) // 2))
    events: list[Event] = []
    args = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002", "--windows", json.dumps([window])]
    with testing.run(TESTS / "vector" / "app.py", args) as app:
        for what, value in [*done, ("advance", 60_000)]:
            now = app.now_ms
            if what == "send":
                key, ahead, number = value
                app.send([f"{key} {now + ahead} {number}".encode()])
                time = now + ahead if window.get("time") == "event" else now
                events.append({"sequence": len(events), "key": key, "time": time, "value": number})
                continue
            app.advance(value / 1000)
            ticks = [now, *range(now - now % interval + interval, now + value, interval), now + value]
            events += [{"sequence": len(events) + at, "tick": tick} for at, tick in enumerate(ticks)]
        wanted, found = reference(window, events).given, [text.decode() for text in app.output()]
        letters = sorted((each.key, each.code) for each in app.dead_letters)
    for key in "ab":
        texts = [" ".join((each.key, *map(str, each.values))) for each in wanted if each.key == key and not each.code]
        assert [text for text in found if text.startswith(key)] == texts
    assert letters == sorted((each.key, each.code) for each in wanted if each.code)


def test_time_cannot_go_back(app: MemoryRun) -> None:
    with pytest.raises(DiagnosticError, match="T207 advance: parameter time is -0.5 s; expected 0 or more"):
        app.advance(-500)
