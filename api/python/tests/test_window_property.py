"""Windows of any kind against the plain reference, over any messages and ticks, in calls and frames of any size."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from window_case import PORT, Event, entries, keys, letters, make, read
from window_history import cut, histories, reference, windows

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket import BucketRun


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

    def encode(values: Sequence[int]) -> tuple[int, list[bytes]]:
        encoding, lengths, joined = stage.codec.encode([stage.codec.freeze(value) for value in values])
        ends = [sum(lengths[: at + 1]) for at in range(len(lengths))]
        return encoding, [joined[end - length : end] for end, length in zip(ends, lengths, strict=True)]

    log: list[bytes] = []
    state = read(stage, log)
    given_out, dead, left = [], [], events
    while left:
        size = data.draw(some.sampled_from((1, 2, 7, 100)))
        part, left = left[:size], left[size:]
        call = pb.Bucket(index=0, bucket=0, wants_snapshot=data.draw(some.booleans()))
        run = BucketRun(stage, call, cut(data.draw, part, encode))
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
