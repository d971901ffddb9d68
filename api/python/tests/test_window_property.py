"""Windows of any kind against the plain reference, over any messages and ticks, in calls and frames of any size."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from window_case import PORT, VECTORS, Event, entries, frames, keys, letters, make, read

from wallaroo.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket import BucketRun
from wallaroo.worker.stage import Stage

YEAR_MS = 31_536_000_000
FAILS = (-1, -2)  # of the vectors' aggregation
# From a message to the next: none, little, around the sizes of windows, and long silences; the clock is set back, too.
STEPS = some.one_of(
    some.sampled_from((0, 0, 0, 1, 1, 2, 3, 5, 30)), some.integers(-60, 60), some.sampled_from((200, -300, YEAR_MS))
)
BEGIN = some.sampled_from((0, -17, 1000, -62_135_596_800_000, 95_617_584_000_000, 253_402_300_799_990))
OWN = some.one_of(
    some.just(0), some.integers(-40, 3), some.sampled_from((-200, 90_000_000_000_000, -(1 << 60), 1 << 62))
)


@some.composite
def windows(draw: some.DrawFn) -> dict[str, Any]:
    if draw(some.integers(0, 4)) == 0:
        return {"kind": "count", "count": draw(some.integers(1, 5)), "flush_ms": draw(some.integers(1, 60))}
    size = draw(some.integers(1, 24))
    return {
        "kind": "range",
        "range_ms": size,
        "slide_ms": draw(some.integers(1, size)),
        "delay_ms": draw(some.sampled_from((0, 0, 1, 5, 30))),
        "late": draw(some.sampled_from(("drop", "fire_per_message", "place_in_oldest_window"))),
        "time": draw(some.sampled_from(("ingest", "event"))),
    }


@some.composite
def histories(draw: some.DrawFn) -> list[Event]:
    """Draw messages of a few keys, and ticks."""
    found: list[Event] = []
    clock = draw(BEGIN)
    for sequence in range(draw(some.integers(0, 60))):
        clock += draw(STEPS)
        for _ in range(draw(some.sampled_from((0, 0, 0, 1, 2)))):
            found.append({"sequence": sequence, "tick": clock})
            clock += draw(some.sampled_from((0, 1, 15)))
        value = draw(some.sampled_from((sequence, sequence, sequence, sequence, sequence, *FAILS)))
        key, time = draw(some.sampled_from("aaab\u00e9")), clock + draw(OWN)
        found.append(
            {"sequence": sequence, "key": key, "time": max(-(1 << 63), min((1 << 63) - 1, time)), "value": value}
        )
    return found


def reference(window: dict[str, Any], events: list[Event]) -> Any:
    sys.path.insert(0, str(VECTORS))
    from make_windows import Reference

    found = Reference(window)
    found.run(events)
    return found


def framed(stage: Stage, events: list[Event], data: some.DataObject) -> Iterator[bytes]:
    """Yield frames of one or more messages, or of a tick, in some order."""
    parts: list[list[Event]] = []
    for event in events:
        if "tick" in event or not parts or "tick" in parts[-1][0] or data.draw(some.booleans()):
            parts.append([])
        parts[-1].append(event)
    for part in data.draw(some.permutations(parts)):
        yield frames(stage, part)[0] if "tick" in part[0] else one_frame(stage, part)


def one_frame(stage: Stage, events: list[Event]) -> bytes:
    names = list(dict.fromkeys(event["key"] for event in events))
    encoding, lengths, data = stage.codec.encode([stage.codec.freeze(event["value"]) for event in events])
    values, at = [], 0
    for length in lengths:
        values.append(data[at : at + length])
        at += length
    earliest, first = min(event["time"] for event in events), events[0]["sequence"]
    return encode_frame(
        values, port=PORT, sequence=first, encoding=encoding, timestamp_ms=earliest,
        keys=[name.encode() for name in names], key_indexes=[names.index(event["key"]) for event in events],
        sequences=[event["sequence"] - first for event in events],
        timestamps=[event["time"] - earliest for event in events],
    )  # fmt: skip


@pytest.mark.parametrize("examples", [150, pytest.param(1000, marks=pytest.mark.long)])
def test_windows_are_those_of_the_reference(kit: Any, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(window=windows(), events=histories(), data=some.data())
    def holds(window: dict[str, Any], events: list[Event], data: some.DataObject) -> None:
        check(kit, window, events, data)

    holds()


def check(kit: Any, window: dict[str, Any], events: list[Event], data: some.DataObject) -> None:
    wanted = reference(window, events)
    stage = make(kit, window)
    log: list[bytes] = []
    state = read(stage, log)
    given_out, dead, left = [], [], events
    while left:
        size = data.draw(some.sampled_from((1, 2, 7, 100)))
        part, left = left[:size], left[size:]
        call = pb.Bucket(index=0, bucket=0, wants_snapshot=data.draw(some.booleans()))
        run = BucketRun(stage, call, list(framed(stage, part, data)))
        if data.draw(some.booleans()):
            state = read(stage, log)  # the worker was restarted, or the bucket evicted
        result = run.attempt(state)
        if result is None:
            state = read(stage, log)
            result = run.careful(state)
        log = entries(result) if result.done.snapshot else log + entries(result)
        given_out += kit.sunk(result.outputs)
        dead += letters(kit, result)
        calendar = state.calendar(PORT)
        assert calendar.written == sum(calendar.sizes.values())
        assert calendar.unread == sum(map(len, calendar.stored.values()))
    outputs = [(each.sequence, f"{each.key!r} {list(each.values)}".encode()) for each in wanted.given if not each.code]
    assert given_out == outputs
    assert sorted(dead) == sorted((each.sequence, each.key, each.code) for each in wanted.given if each.code)
    assert keys(stage, log) == sorted(wanted.keys) == sorted(map(bytes.decode, state.calendar(PORT).names()))
