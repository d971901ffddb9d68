"""Messages that windows refuse: what they cannot read, what `update` loses, times that cannot be."""

import json
import math
import struct
from copy import copy
from typing import Any, ClassVar

import pytest
from window_case import PORT, TUMBLING, Values, application, entries, make, plain, read, run, sums, tick

import wallaroo
from wallaroo.frame import encode_frame, read_frame
from wallaroo.serialization import Serializer
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket import BucketRun
from wallaroo.worker.flight import InFlight
from wallaroo.worker.stage import Stage


class Returning(Values):
    """Returns what the message says."""

    def __init__(self, initial: Any) -> None:
        self.initial = initial

    def initial_accumulator(self) -> Any:
        return copy(self.initial)

    def update(self, data: Any, accumulator: Any) -> Any:  # type: ignore[override]
        if isinstance(accumulator, list):
            accumulator.append(data)
        return accumulator if data == "same" else None if data == "nothing" else data

    def combine(self, left: Any, right: Any) -> Any:
        return left + right if isinstance(left, list) else right

    def output(self, key: Any, accumulator: Any) -> Any:
        return f"{key} {accumulator}"


@pytest.mark.parametrize(
    ("initial", "returned", "is_lost"),
    [
        (0, 1, True), (0, 0.5, True), ("", "a", True), (None, 3, True), ((), (1,), True), ([], [1], True),
        ([], "same", False), ([], "nothing", False), ([], 7, False), ([], "popped", False), (0, "same", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("window", [TUMBLING, {"kind": "count", "count": 9, "flush_ms": 5}], ids=["range", "count"])
def test_what_update_returns_has_no_effect_unless_it_is_a_new_accumulator(
    kit: Any, window: dict[str, Any], initial: Any, returned: Any, is_lost: bool
) -> None:
    stage = make(kit, window, Returning(initial))
    events = sums("nothing", returned, "nothing")  # type: ignore[arg-type]
    result = run(stage, events, [])
    if not is_lost:
        assert not kit.letters(result.outputs)
        return
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.sequence, letter.key) == ("C522", 1, b"a")
    assert letter.error == f"update returned a new accumulator, {returned!r}; only what it changes in place counts"
    after = run(stage, [{"sequence": 3, "tick": at} for at in (90, 990)], entries(result))
    kept = ["nothing", "nothing"] if isinstance(initial, list) else initial
    assert (3, f"a {kept}".encode()) in kit.sunk(after.outputs)


@pytest.mark.parametrize(
    ("codec", "values"), [("int64", [struct.pack(">q", 5), b"short"]), ("string", [b"ok", b"\xff"])]
)
def test_messages_of_another_worker(kit: Any, codec: str, values: list[bytes]) -> None:
    stage = make(kit, TUMBLING, codec=codec)
    frame = encode_frame(values, port=PORT, timestamp_ms=1, keys=[b"a", b"b"], key_indexes=[0, 1])
    call = BucketRun(stage, pb.Bucket(index=0), [frame, tick(2, 11)])
    result = call.attempt(read(stage, []))
    assert result is not None
    assert kit.sunk(result.outputs) == [(2, f"'a' [{5 if codec == 'int64' else repr('ok')}]".encode())]
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.sequence, letter.key, letter.input) == ("C505", 1, b"b", values[1])
    assert letter.error.startswith(f'it is not in codec "{codec}"; ')
    with stage.call(0, InFlight(""), [pb.Skip(ordinal=1, code="C508", reason="it fell")]):
        result = BucketRun(stage, pb.Bucket(index=0), [frame]).attempt(read(stage, []))
    assert result is not None
    assert [(each.code, each.input) for each in kit.letters(result.outputs)] == [("C508", values[1])]


def test_a_message_that_the_users_deserialize_cannot_read(kit: Any) -> None:
    app = application(kit, TUMBLING)
    app.serializer = Serializer(lambda value: json.dumps(value).encode(), json.loads, True)
    stage = make(kit, TUMBLING, app=app)
    good, bad = (encode_frame([data], port=PORT, sequence=at, encoding=32, timestamp_ms=1, keys=[b"a"], key_indexes=[0])
                 for at, data in enumerate((b"7", b"{")))  # fmt: skip
    result = BucketRun(stage, pb.Bucket(index=0), [bad, good, tick(2, 11)]).attempt(read(stage, []))
    assert result is not None
    assert kit.sunk(result.outputs) == [(2, b"'a' [7]")]
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.sequence) == ("C504", 1)
    assert letter.error.startswith("the message cannot be read back; JSONDecodeError: ")


def test_the_dead_letters_of_wrong_times(kit: Any) -> None:
    stage = make(kit, TUMBLING | {"time": "event"})
    events = [
        {"sequence": at, "key": "a", "time": time, "value": at}
        for at, time in enumerate((1_700_000_000_000_000, 95_617_584_000_000, 10))
    ]
    result = run(stage, [*events, {"sequence": 3, "tick": 10}, {"sequence": 3, "tick": 30}], [])
    impossible, stuck = kit.letters(result.outputs)
    assert (impossible.code, impossible.sequence, stuck.code, stuck.sequence) == ("C523", 0, "C524", 3)
    assert impossible.error == (
        "a message of key 'a' has the time 1700000000000000; expected milliseconds since 1970 of the years 1 to 9999"
    )
    assert stuck.error == (
        "messages of key 'a' were late after one of 5000-01-01T00:00:00.000Z; "
        "its windows were emitted, and it begins again"
    )
    assert kit.sunk(result.outputs) == [(3, b"'a' [1]"), (3, b"'a' []")]


class Timed:
    """Reads texts that name what `event_time` gives."""

    times: ClassVar[dict[str, Any]] = {
        "far": 10**30,
        "past": -(10**30),
        "none": None,
        "infinite": math.inf,
        "real": 7.9,
    }

    def header_length(self) -> int:
        return 4

    def payload_length(self, bs: bytes) -> int:
        return int.from_bytes(bs, "big")

    def decode(self, bs: bytes) -> str:
        return bs.decode()

    def event_time(self, bs: bytes) -> Any:
        return self.times[bs.decode()]


@wallaroo.key_extractor
def whole(data: str) -> str:
    return data


def test_times_of_a_decoder_that_no_frame_can_hold(kit: Any) -> None:
    source = wallaroo.source("texts", wallaroo.TCPSourceConfig("127.0.0.1", "7010", Timed()))
    windows = wallaroo.count_windows(2).over(Values)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", "7002", plain)
    app = wallaroo.build_application("times", source.key_by(whole).to(windows).to_sink(sink))
    stage = Stage(app, kit.stage_of(app, "0/sources/0", timestamps=True, buckets=1))
    outputs = stage.run(0, kit.wire([*(name.encode() for name in Timed.times), b"unknown"]))
    assert not kit.letters(outputs)
    found = {}
    for output in outputs:
        frame = read_frame(output.frame)
        found |= {
            frame.keys[index].decode(): time for index, time in zip(frame.key_indexes, frame.times(), strict=True)
        }
    # A message for which there is no time has that of its arrival.
    arrived = 5
    assert found == {
        "far": (1 << 63) - 1, "past": -(1 << 63), "real": 7, "none": arrived, "infinite": arrived, "unknown": arrived,
    }  # fmt: skip
