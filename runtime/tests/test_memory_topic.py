"""Topics in memory: whole records that sinks write reach the sources of their topics."""

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallaroo
from wallaroo import KafkaRecord, KafkaSinkConfig, KafkaSourceConfig, goka
from wallaroo.component.application import Application
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.memory_topic import MemoryTopics, current, using
from wallaroo.testing import Run, run
from wallaroo_runtime.memory.store import foreign_state

BROKERS = [("127.0.0.1", 9092)]
VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"


class Again:
    """Marks what comes from the table."""

    def decode(self, record: KafkaRecord) -> KafkaRecord:
        return replace(record, topic="again")


def source(topic: str, name: str = "", decoder: Again | None = None) -> KafkaSourceConfig:
    is_table = decoder is not None
    return KafkaSourceConfig(topic, BROKERS, "Warn", decoder, content="record", table=is_table, name=name or topic)


def sink(topic: str) -> KafkaSinkConfig:
    return KafkaSinkConfig(topic, BROKERS, "Warn", 0, 0, None, exactly_once=True, content="record")


@wallaroo.computation("halve")
def halve(record: KafkaRecord) -> KafkaRecord | None:
    number = int(record.value or b"0")
    if number == 13:
        raise ValueError(number)
    return KafkaRecord(key=record.key, value=b"%d" % (number // 2), headers=record.headers) if number > 1 else None


class Entries:
    """Makes a state; its type says all, else each start would look at all classes of this directory."""

    def build(self) -> list[tuple[str, int]]:
        return []


@wallaroo.state_computation("log", state=Entries())
def log(record: KafkaRecord, state: list[tuple[str, int]]) -> None:
    state.append((record.topic, record.offset))


def halving(args: list[str]) -> Application:
    """Write half of each number into the topic that it came from, and into the log of its key."""
    numbers = wallaroo.source("numbers", source("numbers"))
    logged = numbers.merge(wallaroo.source("again", source("numbers", "again", Again()))).to(log)
    return wallaroo.build_application("Halve", numbers.to(halve).to_sink(sink("numbers")), logged.to_sink(sink("end")))


def test_what_is_written_to_a_topic_is_read_until_all_is_quiet() -> None:
    with run(halving) as app:
        app.produce([KafkaRecord("numbers", b"k", b"5", (("h", b"1"),)), KafkaRecord("elsewhere", b"k", b"9")])
        records = app.topic("numbers")
        assert [record.value for record in records] == [b"5", b"2", b"1"]
        assert [(record.offset, record.partition, record.headers) for record in records] == [
            (number, 0, (("h", b"1"),)) for number in range(3)
        ]
        assert {record.timestamp_ms for record in records} == {app.now_ms}
        assert [record.value for record in app.topic("elsewhere")] == [b"9"]
        assert [record.value for record in app.kafka_records("0")] == [b"2", b"1"]
        # Both sources of the topic have got each record, the table's first.
        assert app.state("log", "k") == [(name, number) for number in range(3) for name in ("again", "numbers")]


def test_sending_to_one_source_is_followed_too() -> None:
    with run(halving) as app:
        app.send([KafkaRecord(key=b"k", value=b"4")], "numbers")
        assert [record.value for record in app.topic("numbers")] == [b"2", b"1"]


def test_a_micro_batch_that_fails_writes_nothing_and_ends_the_round() -> None:
    with run(halving, on_error="fail") as app:
        with pytest.raises(DiagnosticError, match="ValueError: 13"):
            app.produce([KafkaRecord("numbers", b"k", b"26")])
        assert [record.value for record in app.topic("numbers")] == [b"26", b"13"]
        app.produce([KafkaRecord("numbers", b"j", b"2")])
        assert [record.value for record in app.topic("numbers")] == [b"26", b"13", b"2", b"1"]


def test_a_record_of_other_types_is_refused() -> None:
    with run(halving) as app:
        with pytest.raises(DiagnosticError) as caught:
            app.produce([KafkaRecord("numbers", b"k", 5)])  # type: ignore[arg-type]
        (finding,) = caught.value.diagnostics
        assert finding.code == "R721" and "cannot take KafkaRecord(" in finding.message
        app.produce([KafkaRecord("numbers", b"k", b"1")])


LETTERS = "bersuml"
misspelt = st.tuples(st.sampled_from(["numbers"]), st.integers(0, 6), st.sampled_from(LETTERS)).map(
    lambda drawn: drawn[0][: drawn[1]] + drawn[2] + drawn[0][drawn[1] + 1 :]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(misspelt | st.text("0123", min_size=1) | st.sampled_from(["numbers", "end"]), max_size=5))
def test_a_topic_that_is_not_there_is_no_empty_one(names: list[str]) -> None:
    with run(halving) as app:
        for name in dict.fromkeys(names):
            if name in ("numbers", "end"):
                assert app.topic(name) == []
            else:
                _missing(app, name)


def _missing(app: Run, name: str) -> None:
    """Check what is said of a topic that the application does not have; one that is like no other may be made."""
    is_close = not name.isdecimal()
    hint = '; did you mean "numbers"?' if is_close else ""
    said = (
        f'R720 the application has no topic "{name}"; it has "end", "numbers"{hint}\n  fix: use a name from this list'
    )
    with pytest.raises(DiagnosticError) as caught:
        app.topic(name)
    assert str(caught.value) == said
    record = KafkaRecord(name, b"k", b"1")
    if not is_close:
        app.produce([record])
        assert [each.value for each in app.topic(name)] == [b"1"]
        return
    with pytest.raises(DiagnosticError) as caught:
        app.produce([record])
    assert str(caught.value) == said


def test_a_table_that_is_looked_up_has_a_topic() -> None:
    def application_setup(args: list[str]) -> Application:
        def count(ctx: goka.Context, message: str) -> None:
            ctx.set_value(f"{message} {ctx.lookup('click-table', message)}")

        edges = goka.input("clicks-table", goka.String(), count), goka.lookup("click-table", goka.String())
        return goka.application(["127.0.0.1:9092"], goka.define_group("g", *edges, goka.persist(goka.String())))

    with run(application_setup) as app:
        assert app.topic("click-table") == []
        app.produce(KafkaRecord("click-table", b"Ann", b"7"))
        app.produce([KafkaRecord("clicks-table", b"k", b"Ann")])
        assert app.topic("g-table")[-1].value == b"Ann 7"
        assert app.states("g") == {"k": goka.GroupState(b"Ann 7")}


@settings(deadline=None, max_examples=20)  # each starts an application
@given(st.lists(st.sampled_from([5, None, "text", b"bytes", ("numbers", b"k", b"1")]), min_size=1, max_size=3))
def test_what_is_no_record_is_refused_and_leaves_nothing(others: list[Any]) -> None:
    with run(halving) as app:
        with pytest.raises(DiagnosticError, match="R721 .*expected a KafkaRecord"):
            app.produce([KafkaRecord("numbers", b"k", b"4"), *others])
        assert app.topic("numbers") == []


def test_user_code_sees_the_topics_of_its_engine_alone() -> None:
    topics = MemoryTopics()
    assert current() is None
    with using(topics):
        assert current() is topics
    assert current() is None


class Amount:
    def decode(self, value: bytes) -> int:
        return int(value)


class Amounts:
    def build(self) -> list[int]:
        return []


@wallaroo.state_computation("total", state=Amounts())
def total(amount: int, state: list[int]) -> tuple[int, ...] | None:
    state.append(amount)
    return tuple(state) if amount else None


@wallaroo.encoder
def encode(amounts: tuple[int, ...]) -> tuple[bytes, bytes]:
    return str(sum(amounts)).encode(), b"%d amounts" % len(amounts)


def totalling(args: list[str]) -> Application:
    """Write the total of each key from one topic of values to another one."""
    source = wallaroo.source("amounts", KafkaSourceConfig("amounts", BROKERS, "Warn", Amount()))
    sink = KafkaSinkConfig("totals", BROKERS, "Warn", 0, 0, encode)
    return wallaroo.build_application("Totals", source.to(total).to_sink(sink))


KEYS, VALUES = st.sampled_from([None, b"", b"a", "ä".encode()]), st.sampled_from([b"0", b"1", b"20", b"", None, b"x"])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5), max_size=4))
def test_topics_of_values_are_read_and_written_as_records(batches: list[list[tuple[bytes, bytes]]]) -> None:
    kept: dict[bytes, list[int]] = {}
    wanted, pairs = [], [pair for batch in batches for pair in batch]
    for key, value in (pair for pair in pairs if pair[1] and pair[1].isdigit()):
        amounts = kept.setdefault(key or b"", [])
        amounts.append(int(value))
        wanted += [(b"%d amounts" % len(amounts), str(sum(amounts)).encode())] if int(value) else []
    with run(totalling) as app:
        for batch in batches:
            app.produce([KafkaRecord("amounts", key, value) for key, value in batch])
        assert [(record.key, record.value) for record in app.topic("totals")] == wanted
        assert len(app.dead_letters) == len(pairs) - sum(map(len, kept.values()))


def test_the_state_of_a_group_in_go_is_shown_with_and_without_a_ttl() -> None:
    times = struct.pack("<BqqH", 17, 5, -(1 << 63), 0)  # as `Append` of api/go/internal/timing writes them
    for case in json.loads((VECTORS / "goka.json").read_text())["table_states"]:
        state, data = goka.GroupState(bytes.fromhex(case["value"])), bytes.fromhex(case["go"])
        assert foreign_state(data) == foreign_state(times + data) == state
        assert foreign_state(b"x" + data) == b"x" + data
