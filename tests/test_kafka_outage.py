"""A broker that is away for more than two minutes while a task reads: the run waits, and counts stay exact."""

import time
from pathlib import Path

import pytest

from support.kafka import Broker
from support.kafka_application import (
    DEADLINE_S,
    PARTITIONS,
    Application,
    Make,
    Topic,
    application,
    document,
    send,
    words,
)
from support.run import wait_until
from wallaroo_runtime.kafka.record import follow

pytestmark = [pytest.mark.kafka, pytest.mark.long]
__all__ = ["application"]  # the fixture
# Polls of one record, each with two questions for ends: reading takes half a minute, and tasks are in the middle of it.
SLOWLY = {"kafka.max.partition.fetch.bytes": "600", "kafka.fetch.max.bytes": "600", "kafka.max.poll.records": "1"}
HASTILY = dict.fromkeys(
    ("kafkaConsumer.pollTimeoutMs", "kafka.default.api.timeout.ms", "kafka.request.timeout.ms"), "3000"
)
WORDS, PART, BEGUN_S, AWAY_S, SINK_AWAY_S = 120_000, 30_000, 8.0, 130.0, 30.0
LINES = """
import wallaroo

def application_setup(args):
    folder, broker = args[1:3]
    source = wallaroo.SparkSourceConfig("text", {"path": folder}, decode)
    sink = wallaroo.SparkSinkConfig("kafka", {"kafka.bootstrap.servers": broker, "topic": "lines"}, encode)
    return wallaroo.build_application("lines", wallaroo.source("lines", source).to_sink(sink))

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data

@wallaroo.encoder
def encode(data):
    return data
"""
WORDS_APP = Path(__file__).parent / "support" / "kafka_words.py"
LOST, HUNG = "Lost task", "gave no answer within"  # what is said of tasks, and of workers


def first_micro_batch(running: Application, folder: str) -> bool:
    """Say whether Spark has planned ("offsets"), or committed ("commits") the first micro-batch."""
    return Path(running.directory, "checkpoint", "spark", folder, "0").exists()


def is_alive(running: Application) -> bool:
    return running.process is not None and running.process.poll() is None


def log(running: Application) -> str:
    """Return what Spark has written."""
    return (running.directory / "checkpoint" / "logs" / "spark.log").read_text()


def stays_in_the_middle(running: Application, seconds: float) -> None:
    """Hold that the run goes on for a while, without the end of the micro-batch that is being read."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert is_alive(running), running.output()
        assert not first_micro_batch(running, "commits"), "no task was reading: the micro-batch ended"
        time.sleep(1.0)


def reading(broker: Broker, name: str, application: Make, **options: str) -> tuple[Application, list[str]]:
    """Start a run whose tasks are in the middle of a topic; returns it, and what the topic has."""
    sent = words(0, WORDS)
    broker.create(f"{name}-in", PARTITIONS)
    broker.create(f"{name}-out", PARTITIONS)
    for first in range(0, WORDS, PART):
        send(broker, f"{name}-in", sent[first : first + PART])
    running = application(document(broker, name, once=True, options=SLOWLY | options))
    running.start()
    wait_until(lambda: first_micro_batch(running, "offsets") or not is_alive(running), running.output, DEADLINE_S)
    time.sleep(BEGUN_S)
    return running, sent


def check(broker: Broker, name: str, running: Application, sent: list[str]) -> None:
    """Read what comes out: each word was counted once, and is there once."""
    topic = Topic(broker, f"{name}-out")
    try:
        topic.read_words(len(sent), running)
    finally:
        topic.close()
    assert set(topic.counts) == set(sent)
    assert all(counts == {1} for counts in topic.counts.values()), "a message was counted twice"
    assert topic.records == len(sent), "a record was written twice, and committed"
    assert running.end() == 0


def test_a_task_waits_for_a_broker_that_is_away_for_long(broker: Broker, application: Make) -> None:
    running, sent = reading(broker, "away", application)
    broker.kill()
    try:
        stays_in_the_middle(running, AWAY_S)
    finally:
        broker.start()
    check(broker, "away", running, sent)
    assert "R611" not in running.output() and HUNG not in running.output()
    assert running.output().count("R791") == 1, running.output()
    assert LOST not in log(running), "a task failed; Spark tries each four times"


@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
def test_status_names_source_and_sink_while_the_broker_is_away(mode: str, broker: Broker, application: Make) -> None:
    name, sent = f"status-{mode}", words(0, 90)
    for end in ("in", "out"):
        broker.create(f"{name}-{end}", PARTITIONS)
    running, topic = application(WORDS_APP, name, broker.address), Topic(broker, f"{name}-out")
    running.start("--mode", mode)
    try:
        send(broker, f"{name}-in", sent[:30])
        topic.read_words(30, running)
        assert running.away() == []
        broker.kill()
        no_records = "gives no records now; Connection refused; reading goes on by itself"
        source = f'source "words": Kafka at {broker.address} {no_records}'
        sink = f'sink "{name}" cannot be reached now at {broker.address}; 0 messages waiting'
        wait_until(lambda: running.away() == [source, sink], running.output, DEADLINE_S, every=1.0)
        broker.start()
        send(broker, f"{name}-in", sent[30:])
        topic.read_words(len(sent), running)
        wait_until(lambda: not running.away(), running.output, DEADLINE_S, every=1.0)
        assert running.end() == 0, running.output()
        assert running.output().count("R791") == 1, running.output()
    finally:
        topic.close()


def test_a_task_that_waits_for_a_frozen_broker_does_not_hold_up_the_end(broker: Broker, application: Make) -> None:
    running, sent = reading(broker, "frozen", application)
    broker.freeze()
    try:
        stays_in_the_middle(running, AWAY_S)
        assert LOST not in log(running), "a task failed; Spark tries each four times"
        assert running.end() == 0, running.output()
    finally:
        broker.thaw()
    running.start()
    check(broker, "frozen", running, sent)
    assert HUNG not in running.output()


def test_a_source_may_have_less_patience(broker: Broker, application: Make) -> None:
    """The run ends, and goes on where it was when it is started again."""
    running, sent = reading(broker, "hasty", application, **HASTILY)
    broker.freeze()
    try:
        assert running.wait() == 1, running.output()
    finally:
        broker.thaw()
    assert LOST in log(running)
    assert "R611 the query stopped; Kafka gave no answer: " in running.output()
    running.start()
    check(broker, "hasty", running, sent)


def test_the_sink_of_spark_waits_for_a_broker_that_is_away(broker: Broker, application: Make, tmp_path: Path) -> None:
    """Tasks write the topic, at least once: also while the broker is killed and started again."""
    broker.create("lines", PARTITIONS)
    (tmp_path / "lines.py").write_text(LINES)
    (tmp_path / "in").mkdir()
    running, sent = application(tmp_path / "lines.py", str(tmp_path / "in"), broker.address), set[bytes]()

    def write() -> None:
        name = f"{len(sent)}.txt"
        new = [f"line {len(sent) + number}" for number in range(1000)]
        (tmp_path / name).write_text("\n".join(new))
        (tmp_path / name).rename(tmp_path / "in" / name)
        sent.update(line.encode() for line in new)

    def are_written() -> bool:
        records = follow(broker.cluster, "lines", from_beginning=True, to_end=True)
        return {record.value for record in records} == sent

    write()
    running.start()
    wait_until(lambda: are_written() or not is_alive(running), running.output, DEADLINE_S, every=1.0)
    broker.kill()
    try:
        write()
        time.sleep(SINK_AWAY_S)
        assert is_alive(running), running.output()
    finally:
        broker.start()
    write()
    wait_until(lambda: are_written() or not is_alive(running), running.output, DEADLINE_S, every=1.0)
    assert running.end() == 0, running.output()
    assert "R611" not in running.output()
    assert LOST not in log(running), "a task failed; Spark tries each four times"
