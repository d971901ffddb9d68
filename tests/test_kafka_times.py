"""Times of records that are wrong: those that producers or brokers give, and those that Spark cannot read."""

import time

import pytest
from confluent_kafka import Producer

from support.kafka import Broker
from support.kafka_application import PARTITIONS, Make, Topic, application, send, words
from support.run import TESTS, wallaroo
from wallaroo_runtime.kafka.topic import create_topic

__all__ = ["application"]  # the fixture

pytestmark = pytest.mark.kafka
ANY = str((1 << 63) - 1)
ANY_TIME = {"message.timestamp.before.max.ms": ANY, "message.timestamp.after.max.ms": ANY}
HOUR_MS, YEAR_MS = 3_600_000, 31_557_600_000


@pytest.mark.long
@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
def test_windows_have_the_times_that_producers_or_brokers_give(mode: str, broker: Broker, application: Make) -> None:
    name, now = f"times-{mode}", int(time.time() * 1000)
    create_topic(broker.cluster, f"{name}-given", PARTITIONS, 1, ANY_TIME)
    create_topic(broker.cluster, f"{name}-appended", PARTITIONS, 1, {"message.timestamp.type": "LogAppendTime"})
    create_topic(broker.cluster, f"{name}-out", PARTITIONS, 1, {})
    shifts = {"ahead": HOUR_MS, "late": -HOUR_MS, "far": 50 * YEAR_MS, "past": -80 * YEAR_MS}
    producer = Producer({"bootstrap.servers": broker.address})
    for second in range(10):
        for key, shift in shifts.items():
            producer.produce(f"{name}-given", key, key, timestamp=now + shift + 1000 * second)
    producer.produce(f"{name}-given", "impossible", "impossible", timestamp=10_000 * YEAR_MS)
    producer.produce(f"{name}-appended", "appended", "appended", timestamp=5)
    assert producer.flush(60) == 0
    running = application(TESTS / "support" / "kafka_windows.py", name, broker.address)
    running.start("--mode", mode)
    topic = Topic(broker, f"{name}-out")
    expected = {f"{key}/{now + shift + 1000 * second}" for key, shift in shifts.items() for second in range(10)}

    def full() -> set[str]:
        return {window for window, counts in topic.counts.items() if counts != {0}}  # silent keys have empty ones

    try:
        topic.read_until(lambda: len(full()) > len(expected), "the windows", running)
        assert running.end() == 0, running.output()
    finally:
        topic.close()
    (appended,) = full() - expected
    assert appended.startswith("appended/") and now <= int(appended.partition("/")[2]) <= now + HOUR_MS
    assert {window: topic.counts[window] for window in full()} == dict.fromkeys({*expected, appended}, {1})
    assert "  dead letters 1\n" in running.output()


def test_a_record_that_spark_cannot_read_is_read_in_real_time_mode(broker: Broker, application: Make) -> None:
    """A producer has taken nanoseconds for milliseconds. The run ends, and a change of the mode loses nothing."""
    name, sent = "any", words(0, 100)
    create_topic(broker.cluster, f"{name}-in", PARTITIONS, 1, ANY_TIME)
    broker.create(f"{name}-out", PARTITIONS)
    send(broker, f"{name}-in", sent)
    running = application(TESTS / "support" / "kafka_words.py", name, broker.address)
    topic = Topic(broker, f"{name}-out")
    try:
        running.start()
        topic.read_words(len(sent), running)
        producer = Producer({"bootstrap.servers": broker.address})
        for exponent in range(0, 63, 3):
            for at in (1 << exponent, -1 << exponent):
                sent.append(f"t{len(sent)}")
                producer.produce(f"{name}-in", sent[-1], sent[-1], timestamp=at)
        assert producer.flush(60) == 0
        assert running.wait() == 1
        said = "R611 the query stopped; Spark cannot read the time of a record: Record at topic any-in partition "
        assert said in running.output(), running.output()
        assert "  fix: continue in real-time mode, which reads it: `wallaroo state rescale " in running.output()
        wallaroo("state", "rescale", str(running.directory / "checkpoint"), "--mode", "realtime")
        running.start("--mode", "realtime")
        topic.read_words(len(sent), running)
        assert running.end() == 0, running.output()
    finally:
        topic.close()
    assert topic.counts == {word: {1} for word in sent}
