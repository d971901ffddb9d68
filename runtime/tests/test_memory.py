"""The engine in memory, as users' tests see it: sources, time, states, dead letters, and what it refuses."""

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import wallaroo
from wallaroo import KafkaRecord
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.testing import DeadLetter, Message, Run, run

Setup = Callable[[list[str]], wallaroo.Application]
FRAMED = (4, ">I")


def tcp_source(decode: Callable[[bytes], Any] = bytes.decode) -> wallaroo.TCPSourceConfig:
    return wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.Decoder(decode, *FRAMED))


def tcp_sink(encode: Callable[[Any], bytes] = lambda message: repr(message).encode()) -> wallaroo.TCPSinkConfig:
    return wallaroo.TCPSinkConfig("127.0.0.1", 7002, wallaroo.Encoder(encode))


class Totals:
    """The state of one account."""

    def __init__(self) -> None:
        self.total = 0


@wallaroo.state_computation("add", Totals)
def add(message: tuple[str, int], totals: Totals) -> tuple[str, int]:
    totals.total += message[1]
    return message[0], totals.total


@wallaroo.key_extractor
def account(message: tuple[str, int]) -> str:
    return message[0]


def parsed(payload: bytes) -> tuple[str, int]:
    name, amount = payload.decode().split(" ")
    return name, int(amount)


def accounts(args: list[str]) -> wallaroo.Application:
    stream = wallaroo.source("payments", tcp_source(parsed)).key_by(account).to(add)
    return wallaroo.build_application("accounts", stream.to_sink(tcp_sink()))


def test_payloads_and_objects_are_messages() -> None:
    with run(accounts) as app:
        app.send([b"ada 3", ("bob", 4), bytearray(b"ada 5")])
        assert app.output() == [b"('ada', 3)", b"('bob', 4)", b"('ada', 8)"]


def test_states_are_copies_of_what_is_saved() -> None:
    with run(accounts) as app:
        app.send([b"ada 3", b"bob 4"])
        assert app.state("add", "ada").total == 3
        app.state("add", "ada").total = 9
        app.send([b"ada 1"])
        assert {key: state.total for key, state in app.states("add").items()} == {"ada": 4, "bob": 4}
        assert app.state("add", "cyd") is None


PAYMENTS = some.lists(some.tuples(some.sampled_from("abcde"), some.integers(-9, 9), some.booleans()), max_size=12)


@settings(max_examples=12, deadline=None)
@given(some.lists(PAYMENTS, max_size=5))
def test_any_cut_into_micro_batches_gives_the_same(sends: list[list[tuple[str, int, bool]]]) -> None:
    totals: Counter[str] = Counter()
    expected = []
    with run(accounts) as app:
        for payments in sends:
            for name, amount, _ in payments:
                totals[name] += amount
                expected.append(repr((name, totals[name])).encode())
            app.send([Message(b"%s %d" % (n.encode(), a)) if is_payload else (n, a) for n, a, is_payload in payments])
        assert app.output() == expected
        assert {key: state.total for key, state in app.states("add").items()} == totals
        assert app.dead_letters == []


def test_a_dead_letter_tells_step_error_and_input() -> None:
    with run(accounts) as app:
        app.send([b"ada 3", b"ada x", ("ada", "y")], "payments")
        first, second = app.dead_letters
        assert first == DeadLetter(
            step="payments",
            code="C505",
            error="ValueError: invalid literal for int() with base 10: 'x'",
            message=b"ada x",
            key=None,
            source="payments",
            sequence=1,
            traceback=first.traceback,
        )
        assert "in parsed" in first.traceback
        assert (second.step, second.code, second.key, second.message) == ("add", "C501", "ada", ("ada", "y"))
        assert (second.sequence, app.state("add", "ada").total) == (2, 3)
        app.clear()
        assert (app.dead_letters, app.output(), app.state("add", "ada").total) == ([], [], 3)


def test_a_dead_letter_that_stops_takes_its_micro_batch_along() -> None:
    with run(accounts, on_error="fail") as app:
        app.send([b"ada 3"])
        with pytest.raises(DiagnosticError, match="R611 .*C505 ValueError"):
            app.send([b"ada 4", b"no number"])
        assert (app.output(), app.state("add", "ada").total) == ([b"('ada', 3)"], 3)
        app.send([b"ada 5"])
        assert app.output()[1:] == [b"('ada', 8)"]
        assert app.dead_letters == []


class Sum(wallaroo.Aggregation):
    """Adds amounts up."""

    def initial_accumulator(self) -> list[int]:
        return [0]

    def update(self, input: tuple[str, int], accumulator: list[int]) -> None:
        accumulator[0] += input[1]

    def combine(self, accumulator1: list[int], accumulator2: list[int]) -> list[int]:
        return [accumulator1[0] + accumulator2[0]]

    def output(self, key: str, accumulator: list[int]) -> tuple[str, int]:
        return key, accumulator[0]


def windows(args: list[str], sink: Any = None) -> wallaroo.Application:
    window = wallaroo.range_windows(wallaroo.seconds(10)).over(Sum)
    stream = wallaroo.source("payments", tcp_source(parsed)).key_by(account).to(window)
    return wallaroo.build_application("windows", stream.to_sink(sink or tcp_sink()))


def test_time_passes_when_the_test_lets_it() -> None:
    with run(windows) as app:
        began = app.now_ms
        app.send([b"ada 3", b"ada 4"])
        app.advance(4)
        app.send([b"ada 5"])
        assert app.output() == []
        assert app.state("Sum", "ada") == [[12]]
        app.advance(timedelta(seconds=6))
        assert app.output() == [b"('ada', 12)"]
        assert app.now_ms == began + 10_000
        app.send([b"ada 6"])
        app.advance(10)
        assert app.output()[1:] == [b"('ada', 6)"]


def test_a_failed_batch_leaves_the_time_as_it_is() -> None:
    fails = [True]

    def program(args: list[str]) -> wallaroo.Application:
        return windows(args, tcp_sink(lambda message: b"%d" % message[fails.pop() * 9 if fails else 1]))

    with run(program, on_error="fail") as app:
        began = app.now_ms
        app.send([b"ada 3"])
        with pytest.raises(DiagnosticError, match="R611 .*IndexError"):
            app.advance(10)
        assert (app.now_ms, app.output()) == (began, [])
        app.advance(10)
        assert (app.now_ms, app.output()) == (began + 10_000, [b"3"])


class Numbers:
    """Counts to five."""

    def initial_value(self) -> int:
        return 1

    def apply(self, previous: int) -> int | None:
        return previous + 1 if previous < 5 else None


def numbers(args: list[str]) -> wallaroo.Application:
    stream = wallaroo.source("numbers", wallaroo.GenSourceConfig(Numbers))
    return wallaroo.build_application("numbers", stream.to_sinks([tcp_sink(), tcp_sink(lambda n: b"-%d" % n)]))


def test_a_generator_goes_on_where_it_was() -> None:
    with run(numbers) as app:
        assert (app.generate(2), app.output("0")) == (2, [b"1", b"2"])
        assert (app.generate(), app.output("1")) == (3, [b"-1", b"-2", b"-3", b"-4", b"-5"])


def test_a_message_that_is_refused_takes_the_others_along() -> None:
    with run(accounts) as app:
        with pytest.raises(DiagnosticError, match="R721"):
            app.send([b"ada 1", lambda: 1])
        app.send([b"ada x", ("ada", 2)])
        assert (app.dead_letters[0].sequence, app.output()) == (0, [b"('ada', 2)"])


def refused(setup: Setup, what: Callable[[Run], object]) -> str:
    with run(setup) as app, pytest.raises(DiagnosticError) as error:
        what(app)
    return str(error.value)


@pytest.mark.parametrize(
    ("setup", "what", "text"),
    [
        (
            accounts,
            lambda app: app.send([b""], "orders"),
            'R720 the application has no source "orders"; it has "payments"',
        ),
        (accounts, lambda app: app.output("2"), 'R720 the application has no sink "2"; it has "accounts"'),
        (
            numbers,
            lambda app: app.output(),
            'R720 the application has no single sink of this name; it has "0" (of "numbers"), "1" (of "numbers-2")\n'
            "  fix: use a name from this list",
        ),
        (
            numbers,
            lambda app: app.output("numbers-3"),
            'R720 the application has no sink "numbers-3"; it has "numbers", "numbers-2"',
        ),
        (accounts, lambda app: app.state("sum", "ada"), 'R720 the application has no state "sum"; it has "add"'),
        (numbers, lambda app: app.send([1]), 'R721 source "numbers" cannot take 1; it makes its messages itself'),
        (accounts, lambda app: app.generate(), 'R721 source "payments" cannot take a generator\'s messages; '),
        (accounts, lambda app: app.send([lambda: 1]), 'R721 source "payments" cannot take <function'),
    ],
)
def test_what_the_application_does_not_have_is_refused(setup: Setup, what: Callable[[Run], object], text: str) -> None:
    assert refused(setup, what).startswith(text)


# How a decoder class says how long a payload is: header of a payload of so many bytes, and back; all of 3 bytes.
LENGTHS: list[tuple[Callable[[int], bytes], Callable[[bytes], int]]] = [
    (lambda size: b"%03d" % size, int),
    (lambda size: (size + 3).to_bytes(3, "little"), lambda header: int.from_bytes(header, "little") - 3),
    (lambda size: b"\1" + size.to_bytes(2, "big"), lambda header: int.from_bytes(header[1:], "big")),
]


@settings(max_examples=40, deadline=None)
@given(
    lengths=some.sampled_from(LENGTHS),
    payloads=some.lists(some.binary(max_size=9), min_size=1, max_size=4),
    cut=some.integers(0, 12),
    more=some.binary(max_size=2),
)
def test_a_decoder_class_with_lengths_of_its_own_gets_whole_messages(
    lengths: tuple[Callable[[int], bytes], Callable[[bytes], int]], payloads: list[bytes], cut: int, more: bytes
) -> None:
    class Decoder:
        def header_length(self) -> int:
            return 3

        def payload_length(self, header: bytes) -> int:
            return lengths[1](header)

        def decode(self, payload: bytes) -> bytes:
            return payload

    def setup(args: list[str]) -> wallaroo.Application:
        line = wallaroo.source("in", wallaroo.TCPSourceConfig("127.0.0.1", 7010, Decoder()))
        return wallaroo.build_application("app", line.to_sink(tcp_sink(lambda message: message)))

    messages = [lengths[0](len(payload)) + payload for payload in payloads]
    damaged = messages[0][:cut] + more
    is_whole = False
    with contextlib.suppress(ValueError):  # a header that is no number
        is_whole = len(damaged) >= 3 and lengths[1](damaged[:3]) == len(damaged) - 3
    with run(setup) as app:
        app.send([*messages, payloads[0].decode("latin-1")])  # an object goes past the decoder
        assert app.output()[:-1] == payloads
        if is_whole:
            app.send([damaged])
            return
        with pytest.raises(
            DiagnosticError, match=r'R721 source "in" cannot take .*a header of 3 bytes|C505 payload_length'
        ):
            app.send([damaged])


def test_without_the_runtime_it_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wallaroo_runtime.memory", None)
    with pytest.raises(DiagnosticError) as error:
        run(accounts)
    assert str(error.value) == (
        "R728 wallaroo.testing needs the package wallaroo-spark-runtime; import of wallaroo_runtime.memory halted; "
        f"None in sys.modules\n  fix: {sys.executable} -m pip install -e ./runtime, in a checkout, or its wheel"
    )


PROGRAM = """import wallaroo
def application_setup(args):
    source = wallaroo.TCPSourceConfig("h", 1, wallaroo.Decoder(bytes.decode, 4, ">I"))
    sink = wallaroo.TCPSinkConfig("h", 2, wallaroo.Encoder(lambda text: text.encode() + b"%s"))
    return wallaroo.build_application("p", wallaroo.source("in", source).to_sink(sink))
"""


def test_programs_of_one_name_follow_each_other(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two", "one"):
        file = tmp_path / name / "own_program.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(PROGRAM % name)
        with run(str(file)) as app:
            app.send([b"at "])
            found += app.output()
    assert found == [b"at one", b"at two", b"at one"]


def test_the_page_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL))
    (tmp_path / "bank.py").write_text(files["bank.py"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(files["test_bank.py"], "test_bank.py", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    for test in tests:
        test()
    assert len(tests) == 2


def records_setup(encode: Any = None, decode: Any = None) -> Setup:
    """Return an application that passes whole records on, from topic to topic."""
    brokers = [("127.0.0.1", 9092)]
    records = wallaroo.KafkaSourceConfig("in", brokers, "Warn", decode, content="record", table=True)
    out = wallaroo.KafkaSinkConfig("out", brokers, "Warn", 5, 1000, encode, content="record", exactly_once=True)
    return lambda args: wallaroo.build_application("Records", wallaroo.source("in", records).to_sink(out))


maybe = some.none() | some.binary(max_size=3)
drawn_records = some.builds(
    KafkaRecord, key=maybe, value=maybe, headers=some.lists(some.tuples(some.text(max_size=2), maybe)).map(tuple),
    topic=some.sampled_from(["in", "other"]), timestamp_ms=some.integers(1, 1 << 50), partition=some.integers(0, 9),
    offset=some.integers(1, 1 << 50),
)  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(drawn=some.lists(drawn_records, max_size=5))
def test_whole_records_in_and_out(drawn: list[KafkaRecord]) -> None:
    with run(records_setup()) as app:
        app.send(drawn)
        assert app.kafka_records() == drawn
        assert [KafkaRecord.__module__] * len(drawn) == [type(each).__module__ for each in app.kafka_records("0")]


def test_what_a_test_leaves_out_of_a_record() -> None:
    with run(records_setup()) as app:
        app.send([b"one", Message(b"two", b"k", 7), KafkaRecord(key=b"", offset=9), KafkaRecord(value=b"")])
        now = app.now_ms
        assert app.kafka_records() == [
            KafkaRecord("in", None, b"one", (), now, 0, 0),
            KafkaRecord("in", b"k", b"two", (), 7, 0, 1),
            KafkaRecord("in", b"", None, (), now, 0, 9),
            KafkaRecord("in", None, b"", (), now, 0, 10),
        ]
        with pytest.raises(
            DiagnosticError, match=r'R721 source "in" cannot take KafkaRecord\(.*key of the record is .text., of'
        ):
            app.send([KafkaRecord(key="text")])  # type: ignore[arg-type]


def test_wrong_results_of_encoders_and_decoders_of_records() -> None:
    encode = wallaroo.Encoder(lambda record: {b"none": None, b"text": "x", b"key": KafkaRecord(key=1)}[record.value])  # type: ignore[arg-type]
    with run(
        records_setup(encode, wallaroo.Decoder(lambda record: record if record.value else 1 // 0, *FRAMED))
    ) as app:
        app.send([b"none", b"text", b"key", KafkaRecord()])
        assert app.kafka_records() == []
        found = [(letter.step, letter.code, letter.error) for letter in app.dead_letters]
    assert found == [
        ("Records", "C503", "returned 'x'; expected a KafkaRecord or None"),
        ("Records", "C501", "TypeError: key of the record is 1, of type int; expected bytes or None"),
        ("in", "C505", "ZeroDivisionError: integer division or modulo by zero"),
    ]


def test_a_sink_without_whole_records() -> None:
    def setup(args: list[str]) -> wallaroo.Application:
        return wallaroo.build_application("Plain", wallaroo.source("in", tcp_source()).to_sink(tcp_sink()))

    with run(setup) as app, pytest.raises(DiagnosticError, match="R720 the application has no sink of whole records"):
        app.kafka_records()
