"""`run --available-now` against a plain count: drawn inputs, several runs, a kill, and input that comes meanwhile."""

import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.kafka import Broker, free_port
from support.kafka_gateway import TopicGateway
from support.run import MODES, WAIT_S, Receiver, Run, wait_until

PROGRAM = """
import wallaroo

def application_setup(args):
    counted = wallaroo.source("words", wallaroo.{source}).key_by(word).to(count)
    return wallaroo.build_application("Counts", counted.to_sink(wallaroo.{sink}))

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode()

@wallaroo.key_extractor
def word(text):
    return text

class Count:
    def __init__(self):
        self.words = 0

@wallaroo.state_computation("count", state=Count)
def count(text, count):
    count.words += 1
    return f"{{text}} {{count.words}}"

@wallaroo.encoder
def line(text):
    return text.encode() + b"\\n"

@wallaroo.encoder
def record(text):
    return text, None, None
"""


def counted(words: Iterable[str]) -> Counter[str]:
    """Return the lines that words give."""
    return Counter(f"{word} {number + 1}" for word, times in Counter(words).items() for number in range(times))


class Files:
    """Drawn files of words in a directory."""

    def __init__(self, draw: random.Random, directory: Path) -> None:
        self._draw, self._directory = draw, directory
        self.words: list[str] = []
        self.count = 0
        (directory / "in").mkdir()

    def write(self, files: int) -> None:
        """Write some more, some of which are empty; each appears whole."""
        for _ in range(files):
            drawn = [f"w{self._draw.randrange(9)}" for _ in range(self._draw.choice([0, 1, 40, 3000]))]
            new = self._directory / "new"
            new.write_text("".join(f"{word}\n" for word in drawn), encoding="utf-8")
            new.rename(self._directory / "in" / f"{self.count}.txt")
            self.words += drawn
            self.count += 1


@pytest.mark.jvm
@pytest.mark.long
def test_files_are_counted_to_the_last_and_delivered(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draw, port = random.Random(seed), free_port()
    files, app, checkpoint = Files(draw, tmp_path), tmp_path / "app.py", tmp_path / "checkpoint"
    source = {"path": str(tmp_path / "in"), "maxFilesPerTrigger": draw.randrange(1, 4)}
    sink = f'TCPSinkConfig("127.0.0.1", {port}, line)'
    app.write_text(PROGRAM.format(source=f'SparkSourceConfig("text", {source}, decode)', sink=sink), encoding="utf-8")

    def run(*prefix: object) -> Run:
        return Run(app, None, checkpoint, "--available-now", source="", prefix=prefix)

    files.write(draw.randrange(4, 8))
    fault = f"driver.before_commit:{draw.choice([1, 2])}"
    with run("env", f"WALLAROO_FAULT={fault}", f"WALLAROO_FAULT_DIR={tmp_path}") as killed:
        assert killed.end(WAIT_S) == -signal.SIGKILL, killed.said()
    files.write(draw.randrange(4))
    at_start = counted(files.words)
    with run() as waiting:
        waiting.ready()
        files.write(draw.randrange(1, 3))
        waiting.wait_while_alive(lambda: "R613" in waiting.said(), lambda: "R613")
        waiting.wait_for("messages_processed", at_start.total())
        waiting.wait_while_alive(
            lambda: waiting.last("waiting") >= at_start.total(), lambda: "all to wait for the sink"
        )
        with Receiver(socket.create_server(("127.0.0.1", port))) as receiver:
            assert waiting.end(WAIT_S) == 0, waiting.said()
            assert at_start <= Counter(receiver.lines()) <= counted(files.words)
            with run() as last:
                assert last.end(WAIT_S) == 0, last.said()
            assert Counter(receiver.lines()) == counted(files.words)
            with run() as nothing:
                assert nothing.end(WAIT_S) == 0, nothing.said()
            assert Counter(receiver.lines()) == counted(files.words)


class Topic:
    """A topic of words, which somebody goes on writing until it is closed."""

    def __init__(self, draw: random.Random, broker: Broker, name: str) -> None:
        self.name, self.partitions, self.words = name, draw.randrange(1, 4), list[str]()
        self._draw, self._broker, self._closing = draw, broker, threading.Event()
        broker.create(name, self.partitions)
        self._producer = Producer({"bootstrap.servers": broker.address})

    def write(self, count: int) -> None:
        """Write some more."""
        for _ in range(count):
            word = f"w{self._draw.randrange(9)}"
            self._producer.produce(self.name, word, partition=self._draw.randrange(self.partitions))
            self.words.append(word)
        assert self._producer.flush(60) == 0

    def __enter__(self) -> "Topic":
        self._closing.clear()
        self._thread = threading.Thread(target=self._go_on)
        self._thread.start()
        return self

    def _go_on(self) -> None:
        while not self._closing.wait(0.02):
            self.write(1)

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()


def lines_of(broker: Broker, topic: str) -> Counter[str]:
    """Return the committed records of a topic of one partition."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": topic, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = Counter[str]()
    while True:
        (record,) = consumer.consume(1, WAIT_S)
        if record.error():
            consumer.close()
            return found
        found[(record.value() or b"").decode()] += 1


@pytest.mark.jvm
@pytest.mark.kafka
@pytest.mark.parametrize("mode", MODES)
def test_topics_are_read_to_where_they_ended_at_the_start(broker: Broker, tmp_path: Path, mode: str) -> None:
    """Somebody writes all the time: nobody ever sees the topic's end."""
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draw, out, app = random.Random(seed), f"{mode}-out", tmp_path / "app.py"
    topic = Topic(draw, broker, f"{mode}-in")
    broker.create(out)
    host, _, port = broker.address.partition(":")
    brokers = f'[("{host}", {port})], "Warn"'
    sink = f'KafkaSinkConfig("{out}", {brokers}, 5, 1_000_000, record, exactly_once=True)'
    limit = {"maxOffsetsPerTrigger": "150"} if mode == "microbatch" else {}
    source = f'KafkaSourceConfig("{topic.name}", {brokers}, decode, options={limit})'
    app.write_text(PROGRAM.format(source=source, sink=sink), encoding="utf-8")

    def run(*options: str) -> Run:
        return Run(app, None, tmp_path / "checkpoint", *MODES[mode], *options, source="")

    topic.write(draw.choice([0, 1, 500]))
    with topic:
        at_start = counted(topic.words[:])
        with run("--available-now") as first:
            assert first.end(WAIT_S) == 0, first.said()
        assert at_start <= lines_of(broker, out) <= counted(topic.words), "records are missing, or came twice"
        with run() as killed:
            killed.ready()
            os.killpg(killed.process.pid, signal.SIGKILL)
            killed.end()
    topic.write(draw.choice([0, 500]))
    with run("--available-now") as last:
        assert last.end(WAIT_S) == 0, last.said()
    assert lines_of(broker, out) == counted(topic.words)


def produce(broker: Broker, topic: str, values: list[bytes], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(60) == 0


@pytest.mark.kafka
def test_reading_ends_where_a_run_says_and_goes_on_for_the_next_one(broker: Broker, tmp_path: Path) -> None:
    """Of the gateway, in real-time mode."""
    topic, gateway = "ends", TopicGateway(tmp_path, broker.address)
    broker.create(topic, 3)
    produce(broker, topic, [b"1", b"2", b"3"])
    produce(broker, topic, [b"4"], partition=1)
    gateway.read(topic, {0: 0, 1: 0, 2: 0}, ends={0: 2, 1: 1, 2: 0})
    for expected in ([b"1", b"2", b"3", b"4"], [b"1", b"2", b"3", b"4", b"5", b"6"]):
        gateway.start()
        wait_until(lambda: gateway.status().get("kafka", [{}])[0].get("at_end"), gateway.log, WAIT_S)
        assert sorted(filter(None, gateway.values())) == expected, "what is at the end is in the journal"
        offset = len(expected)
        produce(broker, topic, [b"%d" % (offset + 1)])
        produce(broker, topic, [b"%d" % (offset + 2)], partition=2)
        time.sleep(1.0)  # nobody reads
        assert sorted(filter(None, gateway.values())) == expected
        gateway.end()
        gateway.kafka[0]["ends"] = {0: 4, 1: 1, 2: 1}
