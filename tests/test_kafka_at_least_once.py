"""Topics that are written without transactions: nothing is lost, and only what a death left unrecorded comes again."""

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.kafka import Broker
from support.kafka_application import Make, application
from support.kafka_delivery import DEADLINE_S, PARTITIONS, PORT, Delivery
from support.run import wait_until, wallaroo
from wallaroo import KafkaRecord
from wallaroo.message.frame import encode_frame
from wallaroo.worker.value.kafka_record import write_record
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.kafka.record import follow
from wallaroo_runtime.kafka.topic import create_topic
from wallaroo_runtime.storage.outbox.position import read_position
from wallaroo_runtime.storage.outbox.staging import StagingWriter

__all__ = ["application"]  # the fixture

pytestmark = pytest.mark.kafka
POINTS = ("egress.kafka_produced", "egress.kafka_committed", "egress.before_position")


@pytest.fixture
def delivery(tmp_path: Path, broker: Broker) -> Iterator[Delivery]:
    found = Delivery(tmp_path, broker)
    found.more["exactly_once"] = False
    yield found
    found.close()


def test_each_record_comes_once_while_nothing_dies(delivery: Delivery) -> None:
    drawn = random.Random(4)
    for _ in range(3):
        delivery.start()
        for _ in range(5):
            delivery.publish(drawn.randrange(1, 300))
            delivery.publish_live(drawn)
        delivery.wait_delivered()
        delivery.check()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_versions_with_and_without_transactions_follow_each_other(seed: int, delivery: Delivery) -> None:
    """Each egress has them or not, and ends in order, at a drawn point or at any moment."""
    drawn = random.Random(seed)
    may_repeat: set[int] = set()  # numbers of records that were under way when an egress died
    for _ in range(8):
        delivery.more["exactly_once"] = drawn.random() < 0.5
        ending = drawn.choice(("stop", "kill", *POINTS))
        before = read_position(delivery.root / "outbox", PORT).messages
        egress = delivery.start(**({"WALLAROO_FAULT": f"{ending}:{drawn.randrange(1, 4)}"} if ending in POINTS else {}))
        for _ in range(drawn.randrange(1, 4)):
            if drawn.random() < 0.5:
                delivery.publish_live(drawn)
            else:
                delivery.publish(drawn.randrange(1, 90))
            if ending not in POINTS:
                delivery.wait_delivered()
        if ending == "stop":
            delivery.stop()
            continue
        if ending in POINTS and drawn.random() < 0.8:
            delivery.publish(1)
        with suppress(subprocess.TimeoutExpired):  # it may come to the point less often
            egress.wait(2)
        egress.kill()
        egress.wait(DEADLINE_S)
        may_repeat.update(range(before, len(delivery.sent)))
    delivery.start()
    delivery.wait_delivered()
    delivery.stop()
    found, sent = Counter(delivery.committed()), Counter(delivery.sent)
    assert not sent - found, "records are lost"
    assert not set(found) - set(sent)
    repeated = {record for record, count in (found - sent).items() if count}
    assert repeated <= {delivery.sent[number] for number in may_repeat}


@pytest.mark.parametrize(
    ("exactly_once", "is_frozen"),
    [(False, False), (True, False), *(pytest.param(each, True, marks=pytest.mark.long) for each in (False, True))],
)
def test_a_broker_that_goes_away(exactly_once: bool, is_frozen: bool, delivery: Delivery) -> None:
    delivery.more["exactly_once"] = exactly_once
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    delivery.broker.freeze() if is_frozen else delivery.broker.stop()
    delivery.publish(500)
    delivery.wait(lambda: "R613 " in delivery.findings(), "the finding")
    delivery.broker.thaw() if is_frozen else delivery.broker.start()
    delivery.wait_delivered()
    if exactly_once:
        delivery.check()
    else:
        delivery.stop()
        assert not Counter(delivery.sent) - Counter(delivery.committed())


@pytest.mark.parametrize("exactly_once", [False, True])
def test_records_that_a_topic_never_takes_are_set_aside_and_others_come_once(
    exactly_once: bool, delivery: Delivery
) -> None:
    drawn = random.Random(6)
    delivery.topic += f"-strict-{exactly_once}"
    create_topic(delivery.broker.cluster, delivery.topic, PARTITIONS, 1, {"max.message.bytes": "2000"})
    good = [KafkaRecord(key=b"k%d" % number, value=b"good") for number in range(2000)]
    bad = [KafkaRecord(key=b"k", value=b"", partition=drawn.choice([PARTITIONS, 99])) for _ in range(100)]
    bad += [KafkaRecord(key=b"k", value=bytes(drawn.randrange(3000, 9000))) for _ in range(100)]
    records = good + bad
    drawn.shuffle(records)
    writer = StagingWriter(delivery.root / "staging", "q", 0, 0, 0)
    writer.write(PORT, encode_frame([*map(write_record, records)], port=PORT))
    delivery.outbox.publish("q", 0, writer.finish())
    delivery.more |= {"records": True, "exactly_once": exactly_once}
    assert delivery.start().wait(DEADLINE_S) == 1
    assert "R674 " in delivery.findings()
    assert delivery.committed() == [], "nothing is written before it is known what is refused"
    delivery.more["sets_aside"] = "0/sinks/0"
    delivery.start()
    delivery.wait(lambda: delivery.status().get("sinks", [{}])[0].get("refused") == len(bad), "the counts")
    delivery.stop()
    assert Counter(key for key, _ in delivery.committed()) == Counter(record.key for record in good)


def test_a_broker_with_another_clock_is_an_outage(delivery: Delivery) -> None:
    """Records that come late are as old as those of a machine whose clock is late."""
    delivery.topic += "-punctual"
    create_topic(delivery.broker.cluster, delivery.topic, PARTITIONS, 1, {"message.timestamp.before.max.ms": "3000"})
    delivery.more |= {"exactly_once": True, "sets_aside": "0/sinks/0"}
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    delivery.broker.freeze()
    delivery.publish(500)
    delivery.wait(lambda: delivery.status()["sinks"][0]["pending_messages"], "a call")
    time.sleep(5.0)
    delivery.broker.thaw()
    delivery.wait_delivered()
    delivery.wait(delivery.findings, "the finding")
    told = f"R613 .*; topic {delivery.topic} refuses the time of a record; .*Invalid timestamp.*; this machine's "
    assert re.match(told, delivery.findings()) and delivery.findings().count("R613") == 1, delivery.findings()
    delivery.check()
    assert [*read_letters(delivery.root)] == []


@pytest.mark.parametrize(
    "options", [{"kafka.acks": "1"}, {"kafka.acks": "0", "kafka.retries": "2"}, {"kafka.acks": "all"}]
)
def test_settings_that_give_up_the_order_of_retries(options: dict[str, str], delivery: Delivery) -> None:
    delivery.options = options
    delivery.publish(200)
    delivery.start()
    delivery.wait_delivered()
    delivery.check()


COUNTS = """
import wallaroo


class Total:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation("count", Total)
def count(word, total):
    total.count += 1
    return f"{word} {total.count}"


@wallaroo.key_extractor
def itself(word):
    return word


@wallaroo.encoder
def encode(text):
    return text.encode()


class Text:
    def decode(self, value):
        return value.decode()


def application_setup(args):
    topics, brokers = args[-2:], [tuple(args[-3].split(":"))]
    words = wallaroo.source("in", wallaroo.KafkaSourceConfig(topics[0], brokers, "Warn", Text))
    sink = wallaroo.KafkaSinkConfig(topics[1], brokers, "Warn", 5, 1_000_000, encode)
    return wallaroo.build_application("loose", words.key_by(itself).to(count).to_sink(sink))
"""


@pytest.mark.jvm
def test_a_run_in_both_modes_loses_nothing(broker: Broker, application: Make, tmp_path: Path) -> None:
    broker.create("loose-in", PARTITIONS)
    broker.create("loose-out", PARTITIONS)
    (tmp_path / "app.py").write_text(COUNTS)
    running, sent = application(tmp_path / "app.py", broker.address, "loose-in", "loose-out"), Counter[str]()
    producer = Producer({"bootstrap.servers": broker.address})

    def send(number: int = 300) -> set[str]:
        for _ in range(number):
            word = f"w{random.randrange(40)}"
            sent[word] += 1
            producer.produce("loose-in", word)
        assert producer.flush(60) == 0
        return {f"{word} {place + 1}" for word, count in sent.items() for place in range(count)}

    def found() -> list[str]:
        records = follow(broker.cluster, "loose-out", from_beginning=True, to_end=True)
        return [(record.value or b"").decode() for record in records]

    def wait_for(expected: set[str]) -> None:
        wait_until(lambda: set(found()) == expected, running.output, DEADLINE_S)

    running.start("--mode", "realtime")
    wait_for(send())
    os.kill(json.loads((tmp_path / "checkpoint" / "egress.json").read_bytes())["pid"], signal.SIGKILL)
    wait_for(send())
    assert running.end(signal.SIGKILL) == -signal.SIGKILL
    running.start("--mode", "realtime")
    wait_for(send())  # perhaps by what the kill has left
    wait_until(lambda: running.output().count("successfully initialized") == 2, running.output, DEADLINE_S)
    assert running.end() == 0, running.output()
    done = wallaroo("state", "rescale", tmp_path / "checkpoint", "--mode", "microbatch", seconds=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    expected = send()
    running.start("--stop-when-idle", "3")
    assert running.wait() == 0, running.output()
    running.process = None
    wait_for(expected)
    assert len(found()) <= len(expected) + 2 * 300, "only what a kill left unrecorded comes again"
