"""Messages that windows refuse: what they cannot read, what `update` loses, times that cannot be."""

import json
import math
import re
import struct
from copy import copy
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from call_case import attempt
from hypothesis import given, settings
from hypothesis import strategies as some
from window_case import PORT, TUMBLING, Values, application, entries, make, plain, read, run, sums, tick

import wallaroo
from wallaroo.component.text_line import LineDecoder
from wallaroo.diagnostic.diagnostic import DiagnosticError, shown
from wallaroo.message.frame import DEAD_LETTER_PORT, FRAMED, FrameHeader, encode_frame, read_frame, write_frame
from wallaroo.message.serialization import Serializer
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.flight import MESSAGE, InFlight
from wallaroo.worker.stage.stage import Stage


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
    assert letter.error == f"update returned a new accumulator, {returned!r}; only changes in place count"
    after = run(stage, [{"sequence": 3, "tick": at} for at in (90, 990)], entries(result))
    kept = ["nothing", "nothing"] if isinstance(initial, list) else initial
    assert (3, f"a {kept}".encode()) in kit.sunk(after.outputs)


@pytest.mark.parametrize(
    ("codec", "values"), [("int64", [struct.pack(">q", 5), b"short"]), ("string", [b"ok", b"\xff"])]
)
def test_messages_of_another_worker(kit: Any, codec: str, values: list[bytes]) -> None:
    stage = make(kit, TUMBLING, codec=codec)
    frame = encode_frame(values, port=PORT, timestamp_ms=1, keys=[b"a", b"b"], key_indexes=[0, 1])
    result = attempt(stage, pb.Bucket(index=0), [frame, tick(2, 11)], read(stage, []))
    assert result is not None
    assert kit.sunk(result.outputs) == [(2, f"'a' [{5 if codec == 'int64' else repr('ok')}]".encode())]
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.sequence, letter.key, letter.input) == ("C505", 1, b"b", values[1])
    assert letter.error.startswith(f'it is not in codec "{codec}"; ')
    with stage.call(0, InFlight(""), [pb.Skip(ordinal=1, code="C508", reason="it fell")]):
        result = attempt(stage, pb.Bucket(index=0), [frame], read(stage, []))
    assert result is not None
    assert [(each.code, each.input) for each in kit.letters(result.outputs)] == [("C508", values[1])]


def test_a_message_that_the_users_deserialize_cannot_read(kit: Any) -> None:
    app = application(kit, TUMBLING)
    app.serializer = Serializer(lambda value: json.dumps(value).encode(), json.loads, True)
    stage = make(kit, TUMBLING, app=app)
    good, bad = (encode_frame([data], port=PORT, sequence=at, encoding=32, timestamp_ms=1, keys=[b"a"], key_indexes=[0])
                 for at, data in enumerate((b"7", b"{")))  # fmt: skip
    result = attempt(stage, pb.Bucket(index=0), [bad, good, tick(2, 11)], read(stage, []))
    assert result is not None
    assert kit.sunk(result.outputs) == [(2, b"'a' [7]")]
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.sequence) == ("C504", 1)
    assert letter.error.startswith("the message cannot be read back; JSONDecodeError: ")


def test_the_dead_letters_of_wrong_times(kit: Any) -> None:
    stage = make(kit, TUMBLING | {"time": "event"})
    events = [
        {"sequence": at, "key": "a", "time": time, "value": at}
        for at, time in enumerate((1_700_000_000_000_000, 95_617_584_000_000, 10, (1 << 63) - 1))
    ]
    result = run(stage, [*events, {"sequence": 4, "tick": 10}, {"sequence": 4, "tick": 30}], [])
    impossible, latest, stuck = kit.letters(result.outputs)
    assert (impossible.code, impossible.sequence, stuck.code, stuck.sequence) == ("C523", 0, "C524", 4)
    assert impossible.error == (
        "a message of key 'a' has the time 1700000000000000; expected milliseconds since 1970 of the years 1 to 9999 "
        "(null is -62135596800001)"
    )
    assert "has the time 9223372036854775807 or later; expected" in latest.error, "the nearest of what the program gave"
    assert stuck.error == (
        "a message of key 'a' had the time 5000-01-01T00:00:00.000Z, so the messages after it were late; the key's "
        "windows were emitted, and the key's time begins again"
    )
    assert kit.sunk(result.outputs) == [(4, b"'a' [1]"), (4, b"'a' []")]


class Timed:
    """Reads texts that name what `event_time` gives; a comment is no message, and has no time."""

    times: ClassVar[dict[str, Any]] = {
        "far": 10**30,
        "past": -(10**30),
        "real": 7.9,
        "decimal": Decimal(7),
        "none": None,
        "infinite": math.inf,
        "nan": math.nan,
        "text": "noon",
        "digits": "17",
        "truth": True,
        "bytes": b"17",
        "complex": 7 + 0j,
    }
    right: ClassVar[dict[str, int]] = {"far": (1 << 63) - 1, "past": -(1 << 63), "real": 7, "decimal": 7}

    def header_length(self) -> int:
        return 4

    def payload_length(self, bs: bytes) -> int:
        return int.from_bytes(bs, "big")

    def decode(self, bs: bytes) -> str | None:
        if bs == b"undecodable":
            bs.decode("no codec")
        return None if bs == b"comment" else bs.decode()

    def event_time(self, bs: bytes) -> Any:
        return self.times[bs.decode()]


@wallaroo.key_extractor
def whole(data: str) -> str:
    return data


def timed_stage(kit: Any, decoder: Any, *, timestamps: bool) -> Stage:
    source = wallaroo.source("texts", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decoder))
    windows = wallaroo.count_windows(2).over(Values)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", "7002", plain)
    app = wallaroo.build_application("times", source.key_by(whole).to(windows).to_sink(sink))
    return Stage(app, kit.stage_of(app, "0/sources/0", timestamps=timestamps, buckets=1))


def times_by_key(outputs: list[pb.Output]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for frame in (read_frame(output.frame) for output in outputs if output.port != DEAD_LETTER_PORT):
        for index, time in zip(frame.key_indexes, frame.times(), strict=True):
            found.setdefault(frame.keys[index].decode(), set()).add(time)
    return found


TIMED = Timed()
DECORATED = wallaroo.decoder(4, ">I", event_time=TIMED.event_time)(TIMED.decode)
OF_LINES = wallaroo.line_decoder(event_time=TIMED.event_time)(TIMED.decode)


@pytest.mark.parametrize("decoder", [TIMED, DECORATED, OF_LINES], ids=["class", "decorated", "lines"])
@settings(deadline=None)
@given(names=some.lists(some.sampled_from([*Timed.times, "unknown", "comment", "undecodable"])))
def test_a_message_without_a_time_is_a_dead_letter(kit: Any, decoder: Any, names: list[str]) -> None:
    payloads = [name.encode() for name in names]
    lines = write_frame(FrameHeader(0, len(names), 0, 0, FRAMED, 5), [b"%b\n" % each for each in payloads])
    wire = lines if decoder is OF_LINES else kit.wire(payloads)
    outputs = timed_stage(kit, decoder, timestamps=True).run(0, wire)
    wrong = [(at, name) for at, name in enumerate(names) if name not in Timed.right and name != "comment"]
    letters = kit.letters(outputs)
    assert [(letter.sequence, letter.input.decode()) for letter in letters] == wrong
    assert {(letter.code, letter.path, letter.step) for letter in letters} <= {("C505", "0/sources/0", "texts")}
    assert times_by_key(outputs) == {name: {Timed.right[name]} for name in names if name in Timed.right}
    for letter in letters:
        text = letter.input.decode()
        if text in Timed.times:
            assert f"event_time returned {shown(Timed.times[text])}; expected milliseconds since 1970" in letter.error
        elif text == "unknown":
            assert letter.error == "KeyError: 'unknown'" and "in event_time" in letter.traceback


@pytest.mark.parametrize(
    ("event_time", "said"),
    [
        (5, "T207 line_decoder: parameter event_time is 5; expected a function"),
        (lambda: 5, 'T202 event_time "decode": <lambda> takes 0 parameters; expected 1'),
    ],
)
def test_a_time_that_cannot_be_asked_for(kit: Any, event_time: Any, said: str) -> None:
    with pytest.raises(DiagnosticError, match=re.escape(said)):
        timed_stage(kit, wallaroo.line_decoder(event_time=event_time)(TIMED.decode), timestamps=True)


def test_a_class_made_of_a_decoder_may_give_times_itself() -> None:
    class Own(LineDecoder[..., Any]):
        def event_time(self, bs: bytes) -> int:
            return len(bs)

    assert Own(TIMED.decode).event_time(b"real") == 4
    assert wallaroo.line_decoder()(TIMED.decode).event_time is None


def test_a_time_is_asked_for_only_where_windows_go_by_it(kit: Any) -> None:
    outputs = timed_stage(kit, Timed(), timestamps=False).run(0, kit.wire([b"none", b"unknown"]))
    assert not kit.letters(outputs)


def test_the_message_whose_time_is_asked_for_is_in_flight(kit: Any) -> None:
    seen: list[int] = []

    class Watching(Timed):
        def event_time(self, bs: bytes) -> int:
            seen.append(stage.flight[MESSAGE])
            return 1

    stage = timed_stage(kit, Watching(), timestamps=True)
    with stage.call(0, InFlight(""), []):
        stage.run(0, kit.wire([b"real", b"real", b"far"]))
    assert seen == [1, 2, 3]
