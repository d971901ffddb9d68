"""Exactly once into a topic of Kafka: the egress as a process, ended at named points and at any moment."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.kafka import Broker, free_port
from support.part import PART, configured
from wallaroo.frame import encode_frame
from wallaroo_runtime.durable.line import pack_line
from wallaroo_runtime.egress.kafka_session import ANSWER_S
from wallaroo_runtime.kafka.record import follow
from wallaroo_runtime.kafka.topic import create_topic
from wallaroo_runtime.storage.outbox.live import OUTPUT, Entry
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import Delivered, begin_position, read_position, write_position
from wallaroo_runtime.storage.outbox.staging import StagingWriter

pytestmark = pytest.mark.kafka
DEADLINE_S = 180.0
PORT, PARTITIONS = 3, 3
POINTS = ("produced", "positioned", "committed")


class Delivery:
    """An outbox, the egress over it, and its topic."""

    def __init__(self, root: Path, broker: Broker, topic: str = "") -> None:
        self.root, self.broker, self.batch, self.topic = root, broker, 0, topic or f"once-{root.name}"
        self.sent: list[tuple[bytes | None, bytes | None]] = []
        self.outbox = Outbox(root / "outbox", root / "dead-letters", root / "staging", fsync=False)
        self.egress: subprocess.Popen[bytes] | None = None
        self.options: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.name, self.deaths, self.live = "out", 0, None  # type: str, int, LiveLog | None
        self.brokers = [broker.address]
        if not topic:
            broker.create(self.topic, PARTITIONS)

    def start(self, **environment: str) -> "subprocess.Popen[bytes]":
        target = {"application": "app", "brokers": self.brokers, "topic": self.topic, "options": self.options}
        host, _, port = self.brokers[0].partition(":")
        sink = {"port": PORT, "name": self.name, "host": host, "tcp_port": int(port), "kafka": target}
        command = [sys.executable, "-X", "faulthandler", PART, "egress", configured(self.root, {"sinks": [sink]})]
        with (self.root / "log").open("ab") as log:
            self.egress = subprocess.Popen(command, stderr=log, env=os.environ | self.environment | environment)
        return self.egress

    def publish(self, count: int = 50) -> None:
        """Publish a micro-batch of the next numbers in frames of 20; each tenth is a tombstone."""
        begin, frames = len(self.sent), StagingWriter(self.root / "staging", "q", self.batch, 0, 0, self.batch)
        records: list[tuple[bytes | None, bytes | None]] = [
            (b"%d" % number if number % 3 else None, b"value %d" % number if number % 10 or not number % 3 else None)
            for number in range(begin, begin + count)
        ]
        for at in range(0, count, 20):
            part = records[at : at + 20]
            frames.write(
                PORT,
                encode_frame(
                    [value or b"" for _, value in part],
                    keys=[key or b"" for key, _ in part],
                    key_indexes=list(range(len(part))),
                    absent=[number for number, (_, value) in enumerate(part) if value is None],
                    port=PORT,
                ),
            )
        self.outbox.publish("q", self.batch, frames.finish())
        self.batch += 1
        self.sent += records

    def publish_live(self, drawn: random.Random) -> None:
        """Deliver drawn results of a running batch, among those of another sink; now and then a batch ends."""
        if self.live is None:
            self.live = LiveLog(self.root / "outbox", self.root / "dead-letters", segment_bytes=3000)
            begin_position(self.root / "outbox", PORT)
        for _ in range(drawn.randrange(1, 6)):
            if drawn.random() < 0.4:
                other = encode_frame([b"of another sink"], port=PORT + 1)
                self.live.append(Entry(OUTPUT, PORT + 1, 0, content=other))
            if drawn.random() < 0.2:
                self.outbox.publish("q", self.batch, ())
                self.batch += 1
            count = drawn.randrange(1, 30)
            skip, first = drawn.randrange(count), len(self.sent)
            values = [b"value %d" % number for number in range(first - skip, first - skip + count)]
            frame = encode_frame(values, keys=[b"k"], key_indexes=[0] * count, port=PORT)
            self.live.append(Entry(OUTPUT, PORT, 0, skip=skip, sequence=first, content=frame))
            self.sent += [(b"k", value) for value in values[skip:]]
        if drawn.random() < 0.7:  # a transaction ends after it, and then more comes
            self.live.append(Entry(OUTPUT, PORT + 1, 0, content=encode_frame([b"of another sink"], port=PORT + 1)))
        self.live.sync()

    def committed(self) -> list[tuple[bytes | None, bytes | None]]:
        """Return what readers of committed records see."""
        records = follow(self.broker.cluster, self.topic, from_beginning=True, to_end=True)
        return [(record.key, record.value) for record in records]

    def status(self) -> dict[str, Any]:
        try:
            value: dict[str, Any] = json.loads((self.root / "egress.json").read_bytes())
        except FileNotFoundError:
            return {"state": "", "diagnostics": [], "sinks": [{"messages": 0}]}
        return value

    def wait(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            if time.monotonic() > deadline:
                status = self.status()
                self.show_stacks()
                pytest.fail(f"waited for {what}; {status}; {self.log()}")
            if self.egress is not None and self.egress.poll() == -signal.SIGKILL:
                self.deaths += 1
                self.start()
            time.sleep(0.02)

    def show_stacks(self) -> None:
        """Let the egress end with the stacks of its threads in the log."""
        if self.egress is not None and self.egress.poll() is None:
            self.egress.send_signal(signal.SIGABRT)
            self.egress.wait(DEADLINE_S)

    def wait_delivered(self) -> None:
        self.wait(lambda: read_position(self.root / "outbox", PORT).messages == len(self.sent), "all to be delivered")

    def check(self) -> None:
        """End the egress in order; the topic has each record once."""
        assert self.egress is not None
        self.egress.terminate()
        assert self.egress.wait(DEADLINE_S) == 0, self.log()
        assert Counter(self.committed()) == Counter(self.sent)
        assert not list((self.root / "outbox").glob("*.frames"))

    def log(self) -> str:
        return (self.root / "log").read_text()[-4000:]

    def findings(self) -> str:
        return "\n".join(f"{each['code']} {each['message']}" for each in self.status()["diagnostics"])

    def close(self) -> None:
        if self.egress is not None and self.egress.poll() is None:
            self.egress.kill()
            self.egress.wait(DEADLINE_S)


@pytest.fixture
def delivery(tmp_path: Path, broker: Broker) -> Iterator[Delivery]:
    found = Delivery(tmp_path, broker)
    yield found
    found.close()


@pytest.mark.parametrize("transaction", [1, 2, 3])
def test_an_egress_that_dies_at_each_point(transaction: int, delivery: Delivery) -> None:
    """It dies once at each point of a transaction, of which the first has no records, and at a position."""
    delivery.publish()
    points = POINTS if transaction > 1 else [point for point in POINTS if point != "committed"]
    faults = ",".join(["egress.before_position:2", *(f"egress.kafka_{point}:{transaction}" for point in points)])
    (delivery.root / "faults").mkdir()
    environment = {"WALLAROO_FAULT": faults, "WALLAROO_FAULT_DIR": str(delivery.root / "faults")}
    os.environ.update(environment)
    try:
        delivery.start()
        for _ in range(12):
            delivery.publish()
            delivery.wait_delivered()
    finally:
        for name in environment:
            del os.environ[name]
    assert delivery.deaths == len(points) + 1
    delivery.check()


@pytest.mark.parametrize("seed", [1, 2])
def test_an_egress_that_is_killed_at_drawn_moments(seed: int, delivery: Delivery) -> None:
    """Each time the sink has another name, as after a renaming: its output is known to Kafka by the first one."""
    drawn = random.Random(seed)
    for number in range(6):
        delivery.name = f"out {number}"
        egress = delivery.start()
        delivery.wait(lambda: delivery.status()["state"] == "running", "the egress")
        for _ in range(drawn.randrange(1, 6)):
            delivery.publish(drawn.randrange(1, 400))
            time.sleep(drawn.random() * 0.05)  # the moment is what is drawn
        egress.kill()
        egress.wait(DEADLINE_S)
    delivery.start()
    delivery.wait_delivered()
    delivery.check()
    assert re.fullmatch("wallaroo-app-out 0-[0-9a-f]{16}", read_position(delivery.root / "outbox", PORT).sender)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_live_output_of_an_egress_that_is_killed(seed: int, delivery: Delivery) -> None:
    """Places between results are not the same when the log is read again, since it has grown: counts of results are."""
    drawn = random.Random(seed)
    faults = ",".join(f"egress.kafka_{point}:{number}" for point in POINTS for number in (2, 3, 5))
    (delivery.root / "faults").mkdir()
    delivery.environment = {"WALLAROO_FAULT": faults, "WALLAROO_FAULT_DIR": str(delivery.root / "faults")}
    delivery.publish_live(drawn)
    delivery.start()
    for _ in range(15):
        delivery.publish_live(drawn)
        if drawn.random() < 0.3:
            delivery.publish(drawn.randrange(1, 60))
        delivery.wait(lambda: len(delivery.committed()) == len(delivery.sent), "all to be committed")
        delivery.publish_live(drawn)
    delivery.wait_delivered()
    assert delivery.deaths > 3
    delivery.check()


def test_an_egress_whose_output_another_one_writes(delivery: Delivery, tmp_path: Path) -> None:
    """A copy of a checkpoint is started: Kafka takes nothing of the first egress from then on."""
    delivery.publish()
    first = delivery.start()
    delivery.wait_delivered()
    shutil.copytree(delivery.root / "outbox", tmp_path / "copy" / "outbox")
    second = Delivery(tmp_path / "copy", delivery.broker, delivery.topic)
    second.sent, second.batch = list(delivery.sent), delivery.batch
    second.start()
    try:
        second.publish()
        second.wait_delivered()
        delivery.publish(70)
        assert first.wait(DEADLINE_S) == 1
        assert 'R732 sink "out": another egress writes as wallaroo-app-out-' in delivery.findings()
        second.check()
    finally:
        second.close()


def test_a_broker_that_goes_away(delivery: Delivery) -> None:
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    delivery.broker.stop()
    delivery.publish(500)
    delivery.broker.start()
    delivery.wait_delivered()
    delivery.check()


def test_each_outage_is_reported_while_nothing_is_written(delivery: Delivery) -> None:
    """The client reports that its connections are lost; no transaction has to fail for that."""
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    for number in (1, 2):
        delivery.broker.stop()
        delivery.wait(lambda number=number: delivery.findings().count("R730 ") == number, f"finding {number}")
        delivery.broker.start()
        delivery.wait(lambda: delivery.status()["sinks"][0]["state"] == "connected", "a connection")
    assert delivery.findings().count("R730 ") == 2
    delivery.publish()
    delivery.wait_delivered()
    delivery.check()


def test_an_outage_is_reported_before_a_call_gives_up(delivery: Delivery) -> None:
    """The broker ends while the egress waits for its answer: nothing is gained by waiting on."""
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    delivery.broker.freeze()
    delivery.publish(500)
    delivery.wait(lambda: delivery.status()["sinks"][0]["pending_messages"], "a call")
    delivery.broker.kill()
    begun = time.monotonic()
    delivery.wait(lambda: "R730 " in delivery.findings(), "the finding")
    assert time.monotonic() - begun < ANSWER_S * 2 / 3
    delivery.broker.start()
    delivery.wait_delivered()
    delivery.check()


def test_a_broker_that_is_not_there(delivery: Delivery) -> None:
    delivery.brokers = [f"127.0.0.1:{free_port()}"]
    delivery.start()
    delivery.wait(delivery.findings, "a finding")
    assert delivery.findings() == (
        f'R730 sink "out": Kafka at {delivery.brokers[0]} takes no transaction now; Connection refused; '
        "output is kept and sent later"
    )


def test_records_that_kafka_never_takes(delivery: Delivery) -> None:
    delivery.options = {"kafka.max.request.size": "1000"}
    writer = StagingWriter(delivery.root / "staging", "q", 0, 0, 0, 0)
    writer.write(PORT, encode_frame([b"good", b"x" * 5000], port=PORT))
    delivery.outbox.publish("q", 0, writer.finish())
    assert delivery.start().wait(DEADLINE_S) == 1
    said = f'R785 sink "out": topic {delivery.topic} does not take a record of 5070 bytes; 1000 bytes are possible'
    assert said in delivery.findings()
    assert delivery.committed() == []
    delivery.close()
    delivery.options = {}
    delivery.start()
    delivery.wait(lambda: delivery.committed(), "the records")
    assert sorted(len(value or b"") for _, value in delivery.committed()) == [4, 5000]


@pytest.mark.parametrize("limit", [200, 1500])
def test_small_records_of_a_topic_that_takes_no_large_batch(limit: int, delivery: Delivery) -> None:
    delivery.topic = f"{delivery.topic}-tight"
    create_topic(delivery.broker.cluster, delivery.topic, PARTITIONS, 1, {"max.message.bytes": str(limit)})
    delivery.publish(500)
    delivery.start()
    delivery.wait_delivered()
    delivery.check()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"kafka.no.such": "1"},
            'R716 an option of sink "out" is not usable; No such configuration property: "no.such"',
        ),
        ({"kafka.acks": "1"}, 'R716 an option of sink "out" is not usable; '),
        ({"includeHeaders": "true"}, 'R716 option includeHeaders of sink "out" is not usable; it does not begin with'),
    ],
)
def test_options_that_the_client_has_not(options: dict[str, str], said: str, delivery: Delivery) -> None:
    delivery.options = options
    assert delivery.start().wait(DEADLINE_S) == 1
    assert said in delivery.findings()


def test_a_position_that_does_not_fit(delivery: Delivery) -> None:
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    delivery.close()
    outbox = delivery.root / "outbox"
    position = read_position(outbox, PORT)
    write_position(outbox, PORT, Delivered(9, 0, 0, 90, 900, position.sender), durable=True)
    assert delivery.start().wait(DEADLINE_S) == 1
    assert "does not fit the outbox; Kafka has 50 messages; 90 were delivered" in delivery.findings()
    # An older copy of the outbox: what Kafka has was published after it.
    for name in ("log", f"position-{PORT}"):
        (outbox / name).unlink()
    assert delivery.start().wait(DEADLINE_S) == 1
    assert "does not fit the outbox; Kafka has 50 messages, which the outbox has not" in delivery.findings()
    # Kafka has forgotten the group, and the egress was killed.
    (outbox / f"sender-{PORT}").write_bytes(pack_line({"name": "forgotten", "base": 0}))
    assert delivery.start().wait(DEADLINE_S) == 1
    assert "R731" in delivery.findings()
    assert "Kafka has forgotten it, and the last run did not end in order" in delivery.findings()
