"""Topics that change while a run reads and writes them: more partitions, records that are gone, another topic."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from support.host import descendants
from support.kafka import Broker
from support.kafka_application import DEADLINE_S, PARTITIONS, Application, Make, application, words
from support.run import READY, TESTS, wait_until
from wallaroo_runtime.kafka.client import LATEST
from wallaroo_runtime.kafka.record import follow

__all__ = ["application"]  # the fixture

pytestmark = pytest.mark.kafka
MORE = PARTITIONS + 2


def write(broker: Broker, topic: str, texts: list[str], partitions: int) -> None:
    """Send texts to the partitions of a topic in turn."""
    producer = Producer({"bootstrap.servers": broker.address})
    for number, text in enumerate(texts):
        producer.produce(topic, text, key=text, partition=number % partitions)
    assert producer.flush(60) == 0


def read(broker: Broker, topic: str, count: int, running: Application) -> list[str]:
    """Return the committed results of a topic, sorted, as soon as there are so many."""
    found: list[str] = []

    def is_read() -> bool:
        assert running.process is None or running.process.poll() is None, running.output()
        records = follow(broker.cluster, topic, from_beginning=True, to_end=True)
        found[:] = [(record.value or b"").decode() for record in records]
        return len(found) >= count

    wait_until(is_read, running.output, DEADLINE_S, every=0.5)
    return sorted(text.rpartition(" ")[0] for text in found)


def says(running: Application, text: str, times: int = 1) -> None:
    """Wait until a run has said something so often; it does not end."""
    assert running.process is not None
    process = running.process
    wait_until(lambda: running.output().count(text) >= times or process.poll() is not None, running.output, DEADLINE_S)
    assert process.poll() is None, running.output()


def counted(texts: list[str]) -> list[str]:
    """Return what the application makes of words that come once."""
    return sorted(f"{text} => 1" for text in texts)


@contextlib.contextmanager
def frozen(running: Application) -> Iterator[None]:
    """Let no process of a run do anything."""
    assert running.process is not None
    processes = [running.process.pid, *descendants(running.process.pid)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    time.sleep(1.0)  # by then brokers hold no request for the next records
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize(
    ("mode", "stays_away"),
    [
        ("microbatch", False),
        *(pytest.param(*each, marks=pytest.mark.long) for each in [("microbatch", True), ("realtime", False)]),
        pytest.param("realtime", True, marks=pytest.mark.long),
    ],
)
def test_a_topic_that_changes_while_it_is_read(mode: str, stays_away: bool, broker: Broker, application: Make) -> None:
    name = f"changes-{mode}-{stays_away}"
    source, sink = f"{name}-in", f"{name}-out"
    for topic in (source, sink):
        broker.create(topic, PARTITIONS)
    write(broker, source, ["before"] * 30, PARTITIONS)
    running, sent = application(TESTS / "support" / "kafka_words.py", name, broker.address, "--end"), words(0, 730)
    running.start("--mode", mode)
    says(running, READY)
    write(broker, source, sent[:300], PARTITIONS)
    read(broker, sink, 300, running)

    # New partitions are read from their first record, also by a source that began at the end of the topic.
    broker.grow(source, sink, partitions=MORE)
    write(broker, source, sent[300:600], MORE)
    assert read(broker, sink, 600, running) == counted(sent[:600])

    # Records that are removed before they are read, also the first ones of a new partition.
    with frozen(running):
        ends = broker.cluster.offsets(source, range(MORE), LATEST) | {MORE: 0}
        broker.grow(source, partitions=MORE + 1)
        write(broker, source, sent[600:700], MORE + 1)
        broker.truncate(source, {number: end + 2 for number, end in ends.items()})
    assert running.wait() == 1
    told = [line for line in running.output().splitlines() if line.startswith("R792")]
    expected = [
        f'R792 source "words": unread records of topic {source} are gone, in partition {number} from offset {end} on; '
        f"2 records are gone, and the first one is now {end + 2}"
        for number, end in sorted(ends.items())
    ]
    assert told == (expected if mode == "microbatch" else [line for line in expected if line in told]) != []
    left = sent[:600] + sent[612:700]
    running.start("--mode", mode, "--topic-reset", "start")
    assert read(broker, sink, len(left), running) == counted(left)

    # The topic is deleted, and a topic of its name has fewer records. A run with the option would read them twice in
    # real-time mode: before it compares ids, and when it is started again.
    if mode == "realtime":
        assert running.end() == 0, running.output()
        running.start("--mode", mode)
        says(running, READY, 3)
    (running.directory / "output").write_text("")
    broker.delete(source)
    if stays_away and mode == "microbatch":
        assert running.wait() == 1
        assert f'R673 Kafka at {broker.address} has no such topic "{source}"; it does not exist' in running.output()
    elif stays_away:
        says(running, f'R791 source "words": Kafka at {broker.address} gives no records now; ')
    broker.create(source, PARTITIONS)
    write(broker, source, sent[700:], PARTITIONS)
    if running.process is not None and running.process.poll() is None:
        assert running.wait() == 1
        assert "R738" in running.output() or "R792" in running.output(), running.output()
    running.start("--mode", mode, "--topic-reset", "start")
    says(running, READY)
    left += sent[700:]
    assert read(broker, sink, len(left), running) == counted(left)
    assert running.end() == 0, running.output()
    found = follow(broker.cluster, sink, from_beginning=True, to_end=True)
    assert {record.partition for record in found} == set(range(MORE))
