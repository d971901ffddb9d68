"""Windows of any kind against the plain reference: any messages and ticks, in calls, parts and frames of any size."""

from collections.abc import Sequence
from typing import Any

import pytest
from call_case import closed_call, open_call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from window_case import PORT, Event, Values, dropped, entries, keys, letters, make, read
from window_history import cut, histories, reference, windows

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage


@pytest.mark.parametrize("examples", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_windows_are_those_of_the_reference(kit: Any, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(window=windows(), has_watermarks=some.booleans(), events=histories(), data=some.data())
    def holds(window: dict[str, Any], has_watermarks: bool, events: list[Event], data: some.DataObject) -> None:
        check(kit, window, events, data, has_watermarks=has_watermarks)

    holds()


def plain_call(
    stage: Stage, call: pb.Bucket, state: BucketState, log: list[bytes], frames: list[bytes]
) -> tuple[BucketResult, BucketState]:
    """Return what a call gave, and the state that it left."""
    return closed_call(stage, call, frames, state, lambda: read(stage, log))


class Bounded(Values):
    """The vectors' aggregation, which shows the bounds of its windows."""

    def output(self, key: Any, accumulator: list[int], bounds: Any = None) -> Any:
        return f"{super().output(key, accumulator)} {bounds.start_ms}..{bounds.end_ms}"


def check(
    kit: Any, window: dict[str, Any], events: list[Event], data: some.DataObject, *, has_watermarks: bool
) -> None:
    wanted = reference(window, events, has_watermarks=has_watermarks)
    stage = make(kit, window, Bounded(), watermarks=has_watermarks)

    def encode(values: Sequence[int]) -> tuple[int, list[bytes]]:
        encoding, lengths, joined = stage.codec.encode([stage.codec.freeze(value) for value in values])
        ends = [sum(lengths[: at + 1]) for at in range(len(lengths))]
        return encoding, [joined[end - length : end] for end, length in zip(ends, lengths, strict=True)]

    log: list[bytes] = []
    state = read(stage, log)
    given_out, dead, late, left = [], [], 0, events
    while left:
        size = data.draw(some.sampled_from((1, 2, 7, 100)))
        part, left = left[:size], left[size:]
        call = pb.Bucket(index=0, bucket=0, wants_snapshot=data.draw(some.booleans()))
        if data.draw(some.booleans()):
            state = read(stage, log)  # the worker was restarted, or the bucket evicted
        if data.draw(some.booleans()):
            at = data.draw(some.integers(0, len(part)))
            parts = [cut(data.draw, part[:at], encode), cut(data.draw, part[at:], encode)]
            result, state = open_call(stage, call, state, lambda: read(stage, log), parts)  # noqa: B023
        else:
            result, state = plain_call(stage, call, state, log, cut(data.draw, part, encode))
        log = entries(result) if result.done.snapshot else log + entries(result)
        given_out += kit.sunk(result.outputs)
        dead += letters(kit, result)
        late += dropped(result)
        calendar = state.calendar(PORT)
        assert calendar.written == sum(cell.size for cell in calendar.values())
        assert calendar.unread == sum(len(cell.data) for cell in calendar.values())
    outputs = [
        (each.sequence, f"{each.key!r} {list(each.values)} {each.bounds[0]}..{each.bounds[1]}".encode())
        for each in wanted.given
        if not each.code
    ]
    assert given_out == outputs
    assert late == wanted.dropped
    assert sorted(dead) == sorted((each.sequence, each.key, each.code, each.time) for each in wanted.given if each.code)
    assert keys(stage, log) == sorted(wanted.keys) == sorted(map(bytes.decode, state.calendar(PORT)))
