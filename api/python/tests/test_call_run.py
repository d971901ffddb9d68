"""Bucket calls that stay open: cut anywhere into parts, they give what one plain call gives."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from call_case import closed_call, open_call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.bucket_requests import BucketProtocolError, BucketRequests
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import TEXT

Message = tuple[str, str]  # key and text
KEYS, TEXTS = ("a", "b", "c"), ("x", "y", "boom", "unsaved", "silent", "wrong")


class Failing:
    """Texts that fail when they run again."""

    texts: ClassVar[set[str]] = set()


class Log:
    """A state that remembers its messages."""

    def __init__(self) -> None:
        self.seen: list[str] = []


@wallaroo.state_computation("remember")
def remember(data: str, state: Log) -> Any:
    state.seen.append(data)
    if data == "boom" or data in Failing.texts:
        msg = "boom"
        raise ValueError(msg)
    if data == "once":
        Failing.texts.add(data)
    if data == "wrong":
        return data
    return None if data == "silent" else ",".join(state.seen), data != "unsaved"


@wallaroo.partition
def first(data: str) -> str:
    return data[0]


@wallaroo.encoder
def plain(data: str) -> str:
    return data


def make(kit: Any) -> Stage:
    app = kit.build(lambda builder: builder.to_state_partition(remember, Log, "log", first), encoder=plain)
    return Stage(app, kit.stage_of(app, "0/steps/0"))


def frame_of(messages: Sequence[Message], sequence: int) -> bytes:
    keys = sorted({key for key, _ in messages})
    return encode_frame(
        [text.encode() for _, text in messages], port=1, encoding=TEXT, keys=[key.encode() for key in keys],
        key_indexes=[keys.index(key) for key, _ in messages], sequence=sequence,
    )  # fmt: skip


def cut(draw: Any, messages: Sequence[Message]) -> list[list[bytes]]:
    """Draw parts, and the frames of each; some parts have none."""
    parts: list[list[bytes]] = [[]]
    at = 0
    while at < len(messages):
        size = draw(some.integers(1, 4))
        parts[-1].append(frame_of(messages[at : at + size], at))
        at += size
        if draw(some.booleans()):
            parts.append([])
    return parts


def committed(stage: Stage, log: Sequence[bytes]) -> BucketState:
    state = BucketState(stage.codec)
    state.read(log)
    return state


def plain_call(stage: Stage, call: pb.Bucket, log: list[bytes], frames: list[bytes]) -> BucketResult:
    return closed_call(stage, call, frames, committed(stage, log), lambda: committed(stage, log))[0]


def cut_call(stage: Stage, call: pb.Bucket, log: list[bytes], parts: list[list[bytes]]) -> BucketResult:
    return open_call(stage, call, committed(stage, log), lambda: committed(stage, log), parts)[0]


def what(kit: Any, stage: Stage, log: list[bytes], result: BucketResult) -> Any:
    """Return what a call gave, and the states after it."""
    entries = [entry for change in result.changes for entry in change.entries]
    state = committed(stage, entries if result.done.snapshot else log + entries)
    states = {key: stage.codec.load(cell.data).seen for key, cell in state.table(1).items()}
    letters = sorted((each.code, each.sequence, each.key) for each in kit.letters(result.outputs))
    counts = [each.SerializeToString() for each in result.done.counts]
    return kit.sunk(result.outputs), letters, states, counts, result.done.keys


@pytest.mark.parametrize("examples", [50, pytest.param(1000, marks=pytest.mark.long)])
def test_a_call_cut_into_parts_gives_what_one_call_gives(kit: Any, examples: int) -> None:
    stage, other = make(kit), make(kit)
    message = some.tuples(some.sampled_from(KEYS), some.sampled_from(TEXTS))

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(calls=some.lists(some.lists(message, max_size=12), min_size=1, max_size=3), data=some.data())
    def holds(calls: list[list[Message]], data: some.DataObject) -> None:
        log: list[bytes] = []
        for messages in calls:
            call = pb.Bucket(index=1, wants_snapshot=data.draw(some.booleans()), careful=data.draw(some.booleans()))
            parts = cut(data.draw, messages)
            wanted = plain_call(stage, call, log, [frame for frames in parts for frame in frames])
            found = cut_call(other, call, log, parts)
            assert what(kit, other, log, found) == what(kit, stage, log, wanted)
            entries = [entry for change in wanted.changes for entry in change.entries]
            log = entries if wanted.done.snapshot else log + entries

    holds()


def test_code_that_fails_when_it_runs_again_ends_the_call_with_w430(kit: Any) -> None:
    Failing.texts.clear()
    parts = [[frame_of([("a", "once")], 0)], [frame_of([("a", "boom")], 1)], []]
    with pytest.raises(DiagnosticError) as raised:
        cut_call(make(kit), pb.Bucket(), [], parts)
    Failing.texts.clear()
    assert str(raised.value).splitlines()[0] == (
        'W430 step "remember": user code failed on a retry of a message whose results were already delivered'
    )
    result = cut_call(make(kit), pb.Bucket(careful=True), [], parts)
    assert [(each.code, each.sequence) for each in kit.letters(result.outputs)] == [("C501", 1)]


def requests(*given: pb.Request) -> BucketRequests:
    return BucketRequests(iter(given))


def test_requests_that_are_out_of_place_are_refused() -> None:
    bucket, log = pb.Request(bucket=pb.Bucket(index=1, more=True)), pb.Request(log=pb.StateLog(index=1))
    with pytest.raises(BucketProtocolError, match="a request with release ends call 3"):
        requests().part(pb.Bucket(index=3, release=True))
    with pytest.raises(BucketProtocolError, match="the stream ended in the middle of call 0"):
        requests().part(pb.Bucket(more=True))
    with pytest.raises(BucketProtocolError, match="expected messages of call 0, got those of call 1"):
        requests(bucket).part(pb.Bucket(more=True))
    with pytest.raises(BucketProtocolError, match="expected a bucket call, got log"):
        requests(log).first()
    with pytest.raises(BucketProtocolError, match="expected the state log of call 2, got log"):
        requests(log).log(2)
    waiting = requests(bucket, log)
    assert waiting.log(1) == log.log
    assert waiting.first() == bucket.bucket
    with pytest.raises(BucketProtocolError, match="the stream ended before the state log of call 1"):
        waiting.log(1)
