"""Kafka in and Kafka out against a real broker: exact over a broker's restart and a driver's SIGKILL; the cases."""

import contextlib
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from support.case import PROGRAMS, Case
from support.kafka import Broker
from support.kafka_application import DEADLINE_S, PARTITIONS, Make, Topic, application, document, send, words
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.kafka.topic import create_topic
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import load_document

__all__ = ["application"]  # the fixture

pytestmark = [pytest.mark.jvm, pytest.mark.kafka]
TURN = 1000
KAFKA = [(name, language) for name, language in PROGRAMS if Case(name).setting("runner") == "kafka"]
# All run in memory, in each language (test_memory_cases.py); a broker shows each case once, and each language.
SHOWN = {"celsius_kafka": "python", "kafka_accounts": "go", "kafka_reverse": "python"}


def test_counts_are_exact_when_broker_driver_and_egress_end_in_the_middle(broker: Broker, application: Make) -> None:
    broker.create("exact-in", PARTITIONS)
    broker.create("exact-out", PARTITIONS)
    running = application(document(broker, "exact", once=True))
    running.start()
    topic = Topic(broker, "exact-out")  # its reader sees committed records only
    sent: list[str] = []
    try:
        for turn in range(4):
            batch = words(turn * TURN, (turn + 1) * TURN)
            sent += batch
            send(broker, "exact-in", batch)
            if turn == 1:
                broker.stop()
                broker.start()
            if turn == 2:
                assert running.end(signal.SIGKILL) == -signal.SIGKILL
                running.start()
            if turn == 3:
                egress = json.loads((running.directory / "checkpoint" / "egress.json").read_bytes())
                os.kill(egress["pid"], signal.SIGKILL)
            topic.read_words(len(sent), running)
        assert set(topic.counts) == set(sent)
        assert all(counts == {1} for counts in topic.counts.values()), "a message was counted twice"
        assert topic.records == len(sent), "a record was written twice, and committed"
        broker.delete("exact-in")
        broker.create("exact-in", PARTITIONS)
        send(broker, "exact-in", words(0, len(sent) + TURN))  # Spark's offsets are among the new ones
        assert running.wait() == 1, "it runs on with a topic that was created again"
        assert running.output().count("R738") == 1, running.output()
        running.start()
        assert running.wait() == 1, "records of a topic that was created again were passed over"
        assert running.output().count("R738") == 2, running.output()
        assert "run with `--topic-reset start` to read the new topic from its start" in running.output()
        running.start("--topic-reset", "start", "--available-now")
        assert running.wait() == 0, running.output()
        running.process = None
        new = words(len(sent), len(sent) + TURN)
        found = {tuple(record.value().decode().split()[:3:2]) for record in records_of(broker, "exact-out")}
        expected = {(word, "1") for word in sent + new} | {(word, "2") for word in sent}  # states are kept
        assert expected <= found
        assert found - expected <= {(word, "2") for word in new}, "read before it was noticed, and from the start"
    finally:
        topic.close()


def test_reading_begins_where_partitions_say_and_ends_when_idle(broker: Broker, application: Make) -> None:
    broker.create("start-in", PARTITIONS)
    broker.create("start-out")
    send(broker, "start-in", words(0, 300))
    partitions = [{"number": 0, "start": "90"}, {"number": 2, "start": "-5"}]
    running = application(document(broker, "start", partitions=partitions))
    running.start("--stop-when-idle", "3")
    assert running.wait() == 0, running.output()
    running.process = None
    expected = set(words(0, 300)[0::3][90:] + words(0, 300)[2::3][-5:])
    topic = Topic(broker, "start-out")
    try:
        topic.read_words(len(expected), running)
    finally:
        topic.close()
    assert topic.counts.keys() == expected


def test_records_that_expired_while_it_was_stopped_are_told_and_passed_over(broker: Broker, application: Make) -> None:
    broker.create("lost-in", PARTITIONS)
    broker.create("lost-out")
    running = application(document(broker, "lost"))
    send(broker, "lost-in", words(0, 300))
    running.start("--stop-when-idle", "3")
    assert running.wait() == 0, running.output()
    send(broker, "lost-in", words(300, 900))  # offsets 100 to 299 of each partition
    broker.truncate("lost-in", {0: 150, 1: 300, 2: 90})
    running.start()
    assert running.wait() == 1
    told = [line.partition("; ")[2] for line in running.output().splitlines() if line.startswith("R792")]
    assert told == [
        "50 records are gone, and the first one is now 150",
        "200 records are gone, and the first one is now 300",
    ]
    assert "run with `--topic-reset start` (in real-time mode also `end`) to keep the states" in running.output()
    send(broker, "lost-in", words(900, 1200))
    running.start("--topic-reset", "start", "--stop-when-idle", "3")
    assert running.wait() == 0, running.output()
    running.process = None
    assert running.output().count("R792") == 4
    kept = [*words(0, 300), *words(300, 900)[150::3], *words(300, 900)[2::3], *words(900, 1200)]
    topic = Topic(broker, "lost-out")
    try:
        topic.read_words(len(kept), running)
    finally:
        topic.close()
    assert topic.counts.keys() == set(kept)
    assert all(counts == {1} for counts in topic.counts.values())


def test_a_topic_that_does_not_exist(broker: Broker, application: Make) -> None:
    broker.create("missing-out")
    running = application(document(broker, "missing"))
    running.start()
    assert running.wait() == 1
    assert no_topic(broker, "missing-in", "it does not exist") in running.output()


def no_topic(broker: Broker, topic: str, reason: str) -> str:
    command = f"wallaroo topics create {topic} --brokers {broker.address}"
    return (
        f'R673 Kafka at {broker.address} has no such topic "{topic}"; {reason}\n'
        f"  fix: create it, e.g. with `{command}`, or correct its name and partitions"
    )


def by_spark(app: dict[str, Any], broker: Broker, topic: str) -> dict[str, Any]:
    """Let Spark write a topic in place of the egress."""
    options = {"kafka.bootstrap.servers": broker.address, "topic": topic}
    head = {"path": "0/sinks/0", "name": "rows", "kind": "spark", "inputs": ["0/steps/1"], "worker": "main"}
    app["pipelines"][0]["sinks"] = [{**head, "format": "kafka", "options": options, "value": "value"}]
    app["workers"][0]["interface_hash"] = interface_hash(load_document(app))
    return app


def test_a_sink_whose_topic_does_not_exist_and_is_not_created(broker: Broker, application: Make) -> None:
    broker.create("unwritten-in")
    plain = document(broker, "unwritten")
    running = application(plain)
    for mode in ("microbatch", "realtime"):
        running.start("--mode", mode, "--fresh")
        assert running.wait() == 1
        reason = 'sink "out" writes it, and the brokers create none'
        assert running.output().count(no_topic(broker, "unwritten-out", reason)) == 1, running.output()
        (running.directory / "output").unlink()
    running = application(by_spark(plain, broker, "unwritten-rows"))
    running.start("--fresh")
    assert running.wait() == 1
    reason = 'sink "rows" writes it, and the brokers create none'
    assert no_topic(broker, "unwritten-rows", reason) in running.output()


def test_topics_of_sinks_that_brokers_create(tmp_path: Path, application: Make) -> None:
    broker = Broker(tmp_path / "creates", {"auto.create.topics.enable": "true", "num.partitions": str(PARTITIONS)})
    broker.start()
    try:
        create_topic(broker.cluster, "made-in", PARTITIONS, 1, {})
        send(broker, "made-in", words(0, 30))
        plain = document(broker, "made")
        for name in ("made-out", "made-rows"):
            running = application(by_spark(plain, broker, name) if name == "made-rows" else plain)
            running.start("--stop-when-idle", "3", "--fresh")
            assert running.wait() == 0, running.output()
            found = {record.value().split()[0] for record in records_of(broker, name)}
            assert found == {word.encode() for word in words(0, 30)}
    finally:
        broker.stop()


CHOOSES = """
import wallaroo

def application_setup(args):
    ab = wallaroo.ApplicationBuilder("chooses")
    ab.new_pipeline("chooses", wallaroo.CustomKafkaSourceCLIParser(args, decode))
    ab.to_sink(wallaroo.CustomKafkaSinkCLIParser(args, encode))
    return ab.build()

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8")

@wallaroo.encoder
def encode(data):
    name, partition, size = data.split()
    return (name.ljust(int(size)), None if name == "keyless" else "k", None if partition == "-" else int(partition))
"""


def test_records_that_a_topic_never_takes_end_it_or_are_set_aside(
    broker: Broker, application: Make, tmp_path: Path
) -> None:
    broker.create("chooses-in")
    create_topic(broker.cluster, "chooses-out", PARTITIONS, 1, {"cleanup.policy": "compact"})
    (tmp_path / "app.py").write_text(CHOOSES)
    topics = [f"--kafka_{part}_{name}" for part in ("source", "sink") for name in ("topic", "brokers")]
    values = ("chooses-in", broker.address, "chooses-out", broker.address)
    options = ("--kafka_sink_max_message_size", "100000", "--kafka_sink_max_produce_buffer_ms", "10")
    given = [part for pair in zip(topics, values, strict=True) for part in pair]
    running = application(tmp_path / "app.py", *given, *options)
    producer = Producer({"bootstrap.servers": broker.address})
    for value in ("good 0 5", "large - 1100000", "keyless - 7", "also 2 4"):
        producer.produce("chooses-in", value)
    assert producer.flush(60) == 0
    running.start("--stop-when-idle", "3")
    assert running.wait() == 1
    assert re.search(r'R674 sink ".*" cannot be written, kafka chooses-out; ', running.output()), running.output()
    running.start("--stop-when-idle", "3", "--on-error", "dead_letter")
    assert running.wait() == 0, running.output()
    running.process = None
    assert "set aside: 2 dead letters" in running.output()
    assert re.search(r"stopped: in 4  out 2 .*dead letters 2\n", running.output()), running.output()
    assert f"dead-letters show {tmp_path / 'checkpoint'} " in running.output()
    found = [record.value() for record in records_of(broker, "chooses-out") if record.error() is None]
    assert set(found) == {b"also", b"good "}  # at least once: the first run has written some of them
    letters = {letter.record.preview.split()[0]: letter.record for letter in read_letters(tmp_path / "checkpoint")}
    assert sorted(letters) == ["keyless", "large"]
    assert "100000 bytes are possible" in letters["large"].error
    assert letters["keyless"].error.endswith("it is compacted, and the record has no key")
    for value in ("once 0 5", "keyless - 7", "nowhere 9 7"):
        producer.produce("chooses-in", value)
    assert producer.flush(60) == 0
    running.arguments = (*running.arguments, "--kafka_sink_exactly_once")
    running.start("--stop-when-idle", "3", "--on-error", "dead_letter")
    assert running.wait() == 0, running.output()
    running.process = None
    assert re.search(r"in 7  out 3 .*dead letters 4 since", running.output()), running.output()
    assert re.search(r"in 3  out 1  dead letters 2", running.output()), running.output()


def records_of(broker: Broker, topic: str) -> list[Message]:
    """Return all records that the partitions of a topic hold."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": topic, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    deadline, ended = time.monotonic() + DEADLINE_S, KafkaError._PARTITION_EOF
    found: list[Message] = []
    with contextlib.closing(consumer):
        while sum(record.error() is not None and record.error().code() == ended for record in found) < PARTITIONS:
            assert time.monotonic() < deadline, f"waited for the ends of the partitions of {topic}"
            found += consumer.consume(1000, 0.2)
    return [record for record in found if record.error() is None]


def line_of(case: Case, record: Message) -> str:
    """Return a record as the case's file of expected lines has it."""
    value: str = record.value().decode()
    if case.setting("output") != "records":
        return value
    key = record.key()
    return f"{record.partition()} {'-' if key is None else key.decode()} {value}"


@pytest.mark.parametrize(
    ("name", "language"),
    [pytest.param(*each, marks=() if SHOWN[each[0]] == each[1] else pytest.mark.long) for each in KAFKA],
)
def test_case_gives_the_expected_records(name: str, language: str, broker: Broker, application: Make) -> None:
    case, topics, arguments = Case(name), [], []
    given = case.arguments()
    flags = [option for option in given if option.endswith("_exactly_once")]
    given = [option for option in given if option not in flags]
    for option, value in zip(given[::2], given[1::2], strict=True):
        if option.endswith("_topic"):
            topics.append(f"{value}-{language}")
            broker.create(topics[-1], PARTITIONS)
        own = {"topic": topics[-1], "brokers": broker.address}
        arguments += [option, own.get(option.rpartition("_")[2], value)]
    (messages,) = case.inputs()
    producer = Producer({"bootstrap.servers": broker.address})
    for message in messages:
        key, _, value = message.rpartition(b" ") if case.setting("input")[0]["kind"] == "keyed" else (b"", b"", message)
        producer.produce(topics[0], value, key=key or None)
    assert producer.flush(60) == 0
    running = application(case.app(language), *arguments, *flags)
    running.start("--stop-when-idle", "2")
    assert running.wait() == 0, running.output()
    assert f"stopped: in {len(messages)}  out {len(case.expected(language))}  " in running.output()
    lines = [line_of(case, record) for record in records_of(broker, topics[1])]
    assert case.arranged(lines) == case.arranged(case.expected(language))
    assert not list((running.directory / "checkpoint" / "dead-letters").glob("*.frames"))
