"""Topics in memory: whole records that sinks write reach the sources of their topics."""

import pytest

import wallaroo
from wallaroo import KafkaRecord, KafkaSinkConfig, KafkaSourceConfig
from wallaroo.application import Application
from wallaroo.diagnostic import DiagnosticError
from wallaroo.memory_topic import Topics, current, using
from wallaroo.testing import run

BROKERS = [("127.0.0.1", 9092)]


def source(topic: str, name: str = "", *, table: bool = False) -> KafkaSourceConfig:
    return KafkaSourceConfig(topic, BROKERS, "Warn", None, content="record", table=table, name=name or topic)


def sink(topic: str) -> KafkaSinkConfig:
    return KafkaSinkConfig(topic, BROKERS, "Warn", 0, 0, None, exactly_once=True, content="record")


@wallaroo.computation("halve")
def halve(record: KafkaRecord) -> KafkaRecord | None:
    number = int(record.value or b"0")
    if number == 13:
        raise ValueError(number)
    return KafkaRecord(key=record.key, value=b"%d" % (number // 2), headers=record.headers) if number > 1 else None


@wallaroo.state_computation("log", state=list)
def log(record: KafkaRecord, state: list[tuple[str, int]]) -> None:
    state.append((record.topic, record.offset))


def halving(args: list[str]) -> Application:
    """Write half of each number into the topic that it came from, and into the log of its key."""
    numbers = wallaroo.source("numbers", source("numbers"))
    logged = numbers.merge(wallaroo.source("again", source("numbers", "again", table=True))).to(log)
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
        assert app.state("log", "k") == [("numbers", number) for number in (0, 0, 1, 1, 2, 2)]


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


def test_user_code_sees_the_topics_of_its_engine_alone() -> None:
    topics = Topics()
    assert current() is None
    with using(topics):
        assert current() is topics
    assert current() is None
