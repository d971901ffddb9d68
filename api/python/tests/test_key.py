"""Keys and times that messages carry, records of Kafka, generated messages: in the worker, without a process."""

import enum
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from call_case import attempt, second_try
from hypothesis import given, settings
from hypothesis import strategies as some

import wallaroo
from wallaroo import testing
from wallaroo.component.application import Application, Sink
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.emit.program import LoadedProgram
from wallaroo.emit.topology import topology
from wallaroo.message.frame import encode_frame, read_frame
from wallaroo.message.key import key_bytes, state_key
from wallaroo.message.serialization import Serializer
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.host.call import CallRunner
from wallaroo.worker.stage.exit import KEY_EXPECTED
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import ValueCodec


@wallaroo.key_extractor
def first_letter(data: Any) -> Any:
    return {"n": None, "i": 7, "y": b"y"}.get(data[0], data[0])


@wallaroo.key_extractor
def last_letter(data: Any) -> Any:
    return data[-1]


@wallaroo.computation_multi("split")
def split(data: Any) -> Any:
    return data.split(" ")


@wallaroo.computation("pass")
def same(data: Any) -> Any:
    return data


@wallaroo.state_computation("count", state=list)
def count(data: Any, state: Any) -> Any:
    if data == "boom":
        state.append("spoilt")
        raise ValueError(data)
    state.append(data)
    return None if data == "quiet" else f"{data}{len(state)}"


@wallaroo.state_computation_multi("all", state=list)
def everything(data: Any, state: Any) -> Any:
    state.append(data)
    return {"none": None, "number": 7}.get(data, state + [None])


def app_of(kit: Any, *steps: Any, merged: bool = False) -> Application:
    config = wallaroo.TCPSourceConfig("127.0.0.1", "7010", kit.decode)
    line = wallaroo.source("line", config)
    other = wallaroo.source("other", wallaroo.TCPSourceConfig("127.0.0.1", "7011", kit.decode))
    for step in steps:
        line = step(line)
    if merged:
        line = line.merge(other.key_by(last_letter)).to(same).to(count)
    return wallaroo.build_application("test", line.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", kit.encode)))


def keyed(outputs: Sequence[pb.Output]) -> list[tuple[bytes, Any, int]]:
    """Return key, message and time of what key exits gave."""
    found = []
    codec = ValueCodec(Serializer())
    for output in outputs:
        if output.bucket >= 0:
            frame = read_frame(output.frame)
            messages = codec.decode(frame.header.encoding, frame.lengths, frame.data)
            rows = enumerate(zip(frame.key_indexes, messages, frame.times(), strict=True))
            found += [(frame.sequence_of(at), frame.keys[index], message, time) for at, (index, message, time) in rows]
    return [row[1:] for row in sorted(found, key=lambda row: row[0])]


def test_the_key_stays_through_stateless_steps(kit: Any) -> None:
    app = app_of(kit, lambda line: line.key_by(first_letter).to(split).to(same).to(count))
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, kit.wire([b"a b", b"ix", b"yz"]))
    assert [row[:2] for row in keyed(outputs)] == [
        (b"a", "a"), (b"a", "b"), (bytes(7) + b"\x07", "ix"), (b"y", "yz")
    ]  # fmt: skip
    assert not kit.letters(outputs)


def test_the_last_key_counts_and_collect_gives_the_empty_one(kit: Any) -> None:
    again = app_of(kit, lambda line: line.key_by(first_letter).to(split).key_by(last_letter).to(count))
    outputs = Stage(again, kit.stage_of(again, "0/sources/0")).run(0, kit.wire([b"ab cd"]))
    assert [row[:2] for row in keyed(outputs)] == [(b"b", "ab"), (b"d", "cd")]
    collected = app_of(kit, lambda line: line.key_by(first_letter).collect().to(split).to(count))
    outputs = Stage(collected, kit.stage_of(collected, "0/sources/0")).run(0, kit.wire([b"ab cd"]))
    assert [row[:2] for row in keyed(outputs)] == [(b"", "ab"), (b"", "cd")]


def test_merged_pipelines_keep_each_message_s_own_key(kit: Any) -> None:
    app = app_of(kit, lambda line: line.key_by(first_letter), merged=True)
    stage = kit.stage_of(app, "0/sources/0")
    stage.nodes.insert(1, pb.Node(path="0/sources/1", kind=pb.NODE_KIND_SOURCE, port=1))
    stage.nodes.insert(3, pb.Node(path="0/steps/1", kind=pb.NODE_KIND_KEY_BY, inputs=["0/sources/1"]))
    outputs = Stage(app, stage).run(0, kit.wire([b"ab"], port=0) + kit.wire([b"ab"], port=1, sequence=1))
    assert [row[:2] for row in keyed(outputs)] == [(b"a", "ab"), (b"b", "ab")]


def test_what_is_no_key_is_a_dead_letter_of_the_key_extractor(kit: Any) -> None:
    app = app_of(kit, lambda line: line.key_by(first_letter).to(count))
    stage = Stage(app, kit.stage_of(app, "0/sources/0"))
    outputs = stage.run(0, kit.wire([b"none", b"a", b""]))
    assert [row[:2] for row in keyed(outputs)] == [(b"a", "a")]
    assert [(letter.code, letter.path, letter.step, letter.error) for letter in kit.letters(outputs)] == [
        ("C503", "0/steps/0", "first_letter", f"returned None; expected {KEY_EXPECTED}"),
        ("C501", "0/steps/0", "first_letter", "IndexError: string index out of range"),
    ]
    assert [(each.path, each.messages_in, each.messages_out, each.dead_letters) for each in stage.counts()] == [
        ("0/sources/0", 3, 3, 0), ("0/steps/0", 3, 1, 2), ("0/steps/1", 0, 0, 0)
    ]  # fmt: skip


def test_key_exits_give_times_where_the_stage_asks(kit: Any) -> None:
    app = app_of(kit, lambda line: line.key_by(first_letter).to(split).to(count))
    frame = encode_frame([b"a b", b"c"], port=0, timestamp_ms=1000, timestamps=[7, 3])
    plain = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, frame)
    timed = Stage(app, kit.stage_of(app, "0/sources/0", timestamps=True)).run(0, frame)
    assert keyed(timed) == [(b"a", "a", 1007), (b"a", "b", 1007), (b"c", "c", 1003)]
    assert [row[:2] for row in keyed(plain)] == [row[:2] for row in keyed(timed)]
    assert all(read_frame(output.frame).timestamps for output in timed)
    assert not any(read_frame(output.frame).timestamps for output in plain)


def test_keys_of_a_source_are_the_messages_keys(kit: Any) -> None:
    config = wallaroo.SparkSourceConfig("rate", {}, kit.decode, key="key", timestamp="at")
    sink = wallaroo.TCPSinkConfig("127.0.0.1", "7002", kit.encode)
    app = wallaroo.build_application("test", wallaroo.source("rows", config).to(same).to(count).to_sink(sink))
    frame = encode_frame([b"x", b"drop", b"y"], port=0, keys=[b"k", b""], key_indexes=[0, 1, 1], sequence=4)
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, frame)
    assert [row[:2] for row in keyed(outputs)] == [(b"k", "x"), (b"", "y")]


def in_bucket(app: Application, stage: pb.Stage, keys: Sequence[bytes], values: Sequence[bytes]) -> Any:
    """Run a bucket call; returns its result, and whether it was a second try."""
    data = encode_frame(
        values, port=stage.nodes[0].port, encoding=17, keys=sorted(set(keys)), timestamp_ms=50,
        key_indexes=[sorted(set(keys)).index(key) for key in keys], timestamps=list(range(len(values))),
    )  # fmt: skip
    state = BucketState(ValueCodec(app.serializer))
    result = attempt(Stage(app, stage), pb.Bucket(), [data], state)
    if result is not None:
        return result, False
    return second_try(Stage(app, stage), pb.Bucket(), [data], BucketState(ValueCodec(app.serializer))), True


def test_state_steps_keep_key_and_time_and_always_save(kit: Any) -> None:
    app = app_of(kit, lambda line: line.key_by(first_letter).to(count).to(same).to(everything))
    stage = kit.stage_of(app, "0/steps/1", timestamps=True)
    result, _ = in_bucket(app, stage, [b"p", b"q", b"p"], [b"a", b"quiet", b"b"])
    assert keyed(result.outputs) == [(b"p", "a1", 50), (b"p", "b2", 52)]
    entry = read_frame(result.changes[0].entries[0])
    assert sorted(entry.keys) == [b"p", b"q"]


def test_a_failing_message_leaves_the_state_as_it_was(kit: Any) -> None:
    app = app_of(kit, lambda line: line.key_by(first_letter).to(count).to(everything))
    stage = kit.stage_of(app, "0/steps/1", timestamps=True)
    result, is_second = in_bucket(app, stage, [b"p"] * 3, [b"a", b"boom", b"b"])
    assert is_second
    assert keyed(result.outputs) == [(b"p", "a1", 50), (b"p", "b2", 52)]
    assert [(letter.code, letter.key) for letter in kit.letters(result.outputs)] == [("C501", b"p")]


def test_multi_results_of_states(kit: Any) -> None:
    app = app_of(kit, lambda line: line.collect().to(everything))
    result, is_second = in_bucket(app, kit.stage_of(app, "0/steps/1"), [b""] * 3, [b"a", b"none", b"number"])
    assert is_second
    assert [value for _, value in kit.sunk(result.outputs)] == [b"<a>"]
    assert [letter.error for letter in kit.letters(result.outputs)] == ["returned 7; expected a list or None"]


@wallaroo.encoder
def record(data: Any) -> Any:
    return {
        "bare": "v", "pair": (b"v", "k"), "triple": ("v", None, 3), "nothing": None, "empty": (None, "k"),
        "number": 7, "part": ("v", "k", -1), "surrogate": "\ud800",
    }[data]  # fmt: skip


def test_records_have_keys_and_partitions(kit: Any) -> None:
    app = kit.build()
    app.pipelines[0].sinks = [Sink("0/sinks/0", "topic", "kafka", {}, ("0/sources/0",), record.function)]
    stage = Stage(app, kit.stage_of(app, "0/sources/0"))
    names = b"bare pair triple nothing empty number part surrogate".split()
    outputs = stage.run(0, kit.wire(names, sequence=20))
    frame = read_frame(next(output.frame for output in outputs if output.port == 1))
    keys = [frame.keys[index] for index in frame.key_indexes]
    partition = b"\x09\x00partition\x04\x00\x00\x00\x03\x00\x00\x00"
    assert list(zip(frame.values(), keys, frame.headers, frame.sequences, strict=True)) == [
        (b"v", b"", b"", 0), (b"v", b"k", b"", 1), (b"v", b"", partition, 2)
    ]  # fmt: skip
    assert frame.header.sequence == 20
    assert [(letter.code, letter.sequence) for letter in kit.letters(outputs)] == [
        ("C503", 25), ("C503", 26), ("C504", 27)
    ]  # fmt: skip
    (counts,) = [each for each in stage.counts() if each.path == "0/sinks/0"]
    assert (counts.messages_in, counts.messages_out, counts.dead_letters) == (8, 3, 3)


class Numbers:
    """Counts to a limit; knows a value that it cannot follow."""

    def initial_value(self) -> Any:
        return 1

    def apply(self, previous: Any) -> Any:
        if previous == 7:
            raise ValueError(previous)
        return None if previous >= 5 else previous + 1


def service_of(generator: Any, kit: Any, serializer: Serializer | None = None) -> tuple[CallRunner, Application]:
    line = wallaroo.source("numbers", wallaroo.GenSourceConfig(generator))
    app = wallaroo.build_application("test", line.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, kit.encode)))
    app.serializer = serializer or app.serializer
    return CallRunner(LoadedProgram(app, ".", topology(app, "no_such", "app.py", [])), 1 << 20), app


def asked(service: CallRunner, **request: Any) -> pb.GenerateReply:
    return service.generate(pb.GenerateRequest(**{"path": "0/sources/0", "max_bytes": 1000, **request}))


def test_generate_goes_on_from_the_last_message(kit: Any) -> None:
    service, app = service_of(Numbers, kit)
    first = asked(service, begins=True, max_count=2)
    second = asked(service, previous=first.values[-1], max_count=9)
    assert (first.ended, second.ended, len(first.values)) == (False, True, 2)
    values = [*first.values, *second.values]
    frame = encode_frame(values, port=0, encoding=first.encoding)
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, frame)
    assert [value for _, value in kit.sunk(outputs)] == [b"1", b"2", b"3", b"4", b"5"]
    assert len(asked(service, begins=True, max_count=9, max_bytes=1).values) == 1


def test_generate_goes_on_from_what_was_written_before_the_program_had_a_serializer(kit: Any) -> None:
    service, _ = service_of(Numbers, kit)
    first = asked(service, begins=True, max_count=2)
    later, _ = service_of(Numbers, kit, Serializer(lambda number: b"n%d" % number, lambda data: int(data[1:]), True))
    second = asked(later, previous=first.values[-1], previous_encoding=first.encoding, max_count=1)
    third = asked(later, previous=second.values[-1], previous_encoding=second.encoding, max_count=1)
    assert (first.encoding, second.encoding) == (16, 32)
    assert [*second.values, *third.values] == [b"n3", b"n4"]
    assert asked(later, previous=b"n4", max_count=1).values == [b"n5"]
    gone = asked(service, previous=b"n4", previous_encoding=32, max_count=1).failure
    assert gone.code == "C505" and "values have encoding 32, which this worker did not write" in gone.message


def test_generate_tells_what_failed(kit: Any) -> None:
    class Locks(Numbers):
        def initial_value(self) -> Any:
            return threading.Lock()

    dump = ValueCodec(Serializer()).dump
    service, _ = service_of(Numbers, kit)
    raised = asked(service, previous=dump(7), max_count=9).failure
    assert (raised.code, raised.message) == ("C501", "numbers: ValueError: 7")
    assert "test_key.py" in raised.traceback
    assert asked(service, previous=b"damaged", max_count=9).failure.code == "C505"
    assert asked(service, path="0/sinks/0", begins=True, max_count=9).failure.code == "W403"
    assert asked(service_of(Locks, kit)[0], begins=True, max_count=9).failure.code == "C504"
    with mock.patch("wallaroo.worker.stage.generate.MAX_VALUE_BYTES", 3):
        large = asked(service, begins=True, max_count=9).failure
    assert large.code == "C525" and large.message.endswith("; let the generator return smaller messages")


def test_a_generated_value_that_cannot_be_read_is_a_dead_letter(kit: Any) -> None:
    _, app = service_of(Numbers, kit)
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, encode_frame([b"?"], port=0, encoding=16))
    assert [letter.code for letter in kit.letters(outputs)] == ["C505"]


def test_window_nodes_are_not_for_steps_of_another_kind(kit: Any) -> None:
    app = app_of(kit, lambda line: line.collect().to(count))
    stage = kit.stage_of(app, "0/sources/0")
    stage.nodes[1].kind = pb.NODE_KIND_KEY_BY
    with pytest.raises(DiagnosticError, match="W403"):
        Stage(app, stage)


class Total:
    count = 0


@settings(deadline=None, max_examples=20)
@given(keys=some.lists(some.sampled_from(["a", b"a", "é", "é".encode(), b"\xff", 7, (7).to_bytes(8, "big")])))
def test_a_key_is_its_bytes(keys: list[Any]) -> None:
    """Text, bytes and numbers of the same bytes have one state, as a text and a key of Kafka have."""
    found = iter(keys)

    def count(data: Any, state: Any) -> None:
        state.count += 1

    def setup(args: list[str]) -> Any:
        lines = wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.line_decoder(bytes.decode))
        step = wallaroo.state_computation("count", state=Total)(count)
        line = wallaroo.source("in", lines).key_by(wallaroo.KeyExtractor(lambda data: next(found))).to(step)
        return wallaroo.build_application(
            "a", line.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, wallaroo.Encoder(str)))
        )

    with testing.run(setup) as app:
        app.send([b"x"] * len(keys))
        counts = {key: state.count for key, state in app.states("count").items()}

    def of_bytes(key: Any) -> Any:
        return key.encode() if isinstance(key, str) else key.to_bytes(8, "big") if key == 7 else key

    assert {of_bytes(key): count for key, count in counts.items()} == Counter(map(of_bytes, keys))


class Letter(enum.Enum):
    A = 1


STRUCTURED_KEYS = some.recursive(
    some.sampled_from([-1, 0.5, 1 << 64, Letter.A, frozenset({1}), (1,), (), ("a", b"a")]),
    lambda inner: some.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


@settings(deadline=None, max_examples=50)
@given(key=STRUCTURED_KEYS, times=some.integers(1, 3))
def test_bytes_choose_the_state_of_no_structured_key(key: Any, times: int) -> None:
    """A sender may know the bytes of a tuple, and those that bytes like these get."""
    chain = [key, key_bytes(key)]
    for _ in range(times):
        chain.append(state_key(chain[-1]))
    keys = iter([*chain, *chain])

    @wallaroo.state_computation("count", state=Total)
    def count(data: Any, state: Any) -> int:
        state.count += 1
        return state.count

    def setup(args: list[str]) -> Any:
        lines = wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.line_decoder(bytes.decode))
        line = wallaroo.source("in", lines).key_by(wallaroo.KeyExtractor(lambda data: next(keys))).to(count)
        return wallaroo.build_application(
            "a", line.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, wallaroo.Encoder(str)))
        )

    with testing.run(setup) as app:
        app.send([b"x"] * len(chain))
        assert [state.count for state in app.states("count").values()] == [1] * len(chain)
        app.send([b"x"] * len(chain))
        assert [app.state("count", each).count for each in chain] == [2] * len(chain)
