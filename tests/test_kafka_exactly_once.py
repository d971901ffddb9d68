"""Exactly once into a topic of Kafka: the egress as a process, ended at named points and at any moment."""

import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.kafka import Broker, free_port
from support.kafka_delivery import DEADLINE_S, PARTITIONS, PORT, Delivery
from wallaroo import KafkaRecord
from wallaroo.message.frame import encode_frame
from wallaroo.worker.value.kafka_record import write_record
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.egress.kafka_session import ProducerSession
from wallaroo_runtime.egress.kafka_transaction import ANSWER_S, TransactionalSession
from wallaroo_runtime.kafka.client import kafka_client
from wallaroo_runtime.kafka.topic import create_topic
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition, read_position, write_position
from wallaroo_runtime.storage.outbox.sink_record import RecordColumns
from wallaroo_runtime.storage.outbox.staging import StagingWriter

pytestmark = pytest.mark.kafka
POINTS = ("produced", "positioned", "committed")


@pytest.fixture
def delivery(tmp_path: Path, broker: Broker) -> Iterator[Delivery]:
    found = Delivery(tmp_path, broker)
    yield found
    found.close()


@pytest.mark.parametrize("transaction", [1, 2, pytest.param(3, marks=pytest.mark.long)])
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


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_an_egress_that_is_killed_at_drawn_moments(seed: int, delivery: Delivery) -> None:
    """Each time the sink has another name, as after a renaming: its output is known to Kafka by the first one."""
    drawn = random.Random(seed)
    for number in range(6):
        delivery.name = f"out {number}"
        egress = delivery.start()
        delivery.wait(lambda: delivery.status()["state"] == "running", "the egress")
        if number == 0:  # on a slow machine it would be killed before it has a name
            delivery.wait(lambda: bool(read_position(delivery.root / "outbox", PORT).sender), "the first name")
        for _ in range(drawn.randrange(1, 6)):
            delivery.publish(drawn.randrange(1, 400))
            time.sleep(drawn.random() * 0.05)  # the moment is what is drawn
        egress.kill()
        egress.wait(DEADLINE_S)
    delivery.start()
    delivery.wait_delivered()
    delivery.check()
    assert re.fullmatch("wallaroo-app-out 0-[0-9a-f]{16}", read_position(delivery.root / "outbox", PORT).sender)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
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


@pytest.mark.parametrize("is_older", [False, True])
def test_an_egress_whose_output_another_one_writes(is_older: bool, delivery: Delivery, tmp_path: Path) -> None:
    """A copy of a checkpoint is started: Kafka takes nothing of the first egress from then on.

    If Kafka has output that the copy has not made, the copy ends, too. The original goes on when it is started again.
    """
    delivery.publish()
    first = delivery.start()
    delivery.wait_delivered()
    delivery.wait(lambda: not list((delivery.root / "outbox").glob("*.frames")), "the end of delivered files")
    shutil.copytree(delivery.root / "outbox", tmp_path / "copy" / "outbox")
    second = Delivery(tmp_path / "copy", delivery.broker, delivery.topic)
    second.sent, second.batch = list(delivery.sent), delivery.batch
    if is_older:
        delivery.publish(70)
        delivery.wait_delivered()
    copy = second.start()
    try:
        if is_older:
            assert copy.wait(DEADLINE_S) == 1
            found = second.findings()
            assert "R731 " in found and "Kafka has 120 messages, which the outbox has not" in found
            assert "if this is a copy of a checkpoint, run the orig" in second.status()["diagnostics"][-1]["fix"]
        else:
            second.publish()
            second.wait_delivered()
        delivery.publish(70)
        assert first.wait(DEADLINE_S) == 1
        assert 'R732 sink "out": another egress writes as wallaroo-app-out-' in delivery.findings()
        if is_older:
            delivery.start()
            delivery.wait_delivered()
        (delivery if is_older else second).check()
    finally:
        second.close()


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_sink_that_rests_may_be_forgotten_by_kafka(is_killed: bool, delivery: Delivery) -> None:
    """A run of weeks whose sink gets output rarely: no commit is in doubt after some seconds without output."""
    delivery.publish()
    egress = delivery.start()
    delivery.wait_delivered()
    delivery.wait(lambda: not (delivery.root / "outbox" / f"open-{PORT}").exists(), "the sink to rest")
    delivery.forget()
    if is_killed:
        egress.kill()
    else:
        delivery.broker.stop()
        delivery.broker.start()
    delivery.publish()
    delivery.wait_delivered()
    assert "R731" not in delivery.findings()
    delivery.check()


def test_each_outage_is_reported_while_nothing_is_written(delivery: Delivery) -> None:
    """The client reports that its connections are lost; no transaction has to fail for that."""
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    for number in (1, 2):
        delivery.broker.stop()
        delivery.wait(lambda number=number: delivery.findings().count("R613 ") == number, f"finding {number}")
        delivery.broker.start()
        delivery.wait(lambda: delivery.status()["sinks"][0]["state"] == "connected", "a connection")
    assert delivery.findings().count("R613 ") == 2
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
    delivery.wait(lambda: "R613 " in delivery.findings(), "the finding")
    assert time.monotonic() - begun < ANSWER_S * 2 / 3
    delivery.broker.start()
    delivery.wait_delivered()
    delivery.check()


def test_a_broker_that_is_not_there(delivery: Delivery) -> None:
    delivery.brokers = [f"127.0.0.1:{free_port()}"]
    delivery.start()
    delivery.wait(delivery.findings, "a finding")
    assert delivery.findings() == (
        f'R613 sink "out" cannot be reached at Kafka at {delivery.brokers[0]}; Connection refused; '
        "output is kept and sent later"
    )


@pytest.mark.parametrize("runs", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_topic_that_is_deleted_while_the_egress_is_stopped_or_runs(runs: bool, delivery: Delivery) -> None:
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    if not runs:
        delivery.check()
    delivery.broker.delete(delivery.topic)
    delivery.publish()
    if not runs:
        delivery.start()
    delivery.wait(delivery.findings, "the finding")
    assert delivery.findings() == (
        f'R613 sink "out" cannot be reached at Kafka at {delivery.brokers[0]}; it has no topic {delivery.topic}; '
        "output is kept and sent later"
    )
    (finding,) = delivery.status()["diagnostics"]
    assert finding["fix"] == "provide the receiver of the output: the topic, e.g. with `wallaroo topics create`"
    delivery.broker.create(delivery.topic, PARTITIONS)
    delivery.sent = delivery.sent[50:]
    delivery.wait(lambda: read_position(delivery.root / "outbox", PORT).messages == 100, "all to be delivered")
    delivery.check()


def test_records_that_kafka_never_takes(delivery: Delivery) -> None:
    delivery.options = {"kafka.max.request.size": "1000"}
    writer = StagingWriter(delivery.root / "staging", "q", 0, 0, 0)
    writer.write(PORT, encode_frame([b"good", b"x" * 5000], port=PORT))
    delivery.outbox.publish("q", 0, writer.finish())
    assert delivery.start().wait(DEADLINE_S) == 1
    said = (
        f'R674 sink "out" cannot be written, kafka {delivery.topic}; it never takes message 1 of this sink: '
        "a record of 5070 bytes; 1000 bytes are possible, with key, headers and batch"
    )
    assert said in delivery.findings()
    assert delivery.committed() == []
    delivery.close()
    delivery.options = {}
    delivery.start()
    delivery.wait(lambda: delivery.committed(), "the records")
    assert sorted(len(value or b"") for _, value in delivery.committed()) == [4, 5000]


NEVER = (
    KafkaRecord(key=b"k", value=b"v", partition=99),
    KafkaRecord(key=b"k", value=bytes(5000)),
    KafkaRecord(key=b"k", value=b"", headers=(("large", bytes(5000)),)),
    KafkaRecord(key=None, value=b"without a key"),
    KafkaRecord(key=b"k", value=b"of the future", timestamp_ms=1 << 42),
    KafkaRecord(key=b"other", value=b"of a later future", timestamp_ms=1 << 43),
)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_records_that_a_topic_never_takes_can_be_set_aside(seed: int, delivery: Delivery) -> None:
    drawn = random.Random(seed)
    delivery.topic += "-strict"
    settings = {"cleanup.policy": "compact", "max.message.bytes": "2000"}
    create_topic(delivery.broker.cluster, delivery.topic, PARTITIONS, 1, settings)
    chosen = drawn.sample(NEVER, drawn.randrange(1, len(NEVER) + 1))
    records = [KafkaRecord(key=b"%d" % number, value=b"good") for number in range(drawn.randrange(40))] + chosen
    drawn.shuffle(records)
    positions = sorted(drawn.choices(range(9999), k=len(records)))
    publish_records(delivery, records, positions, batch=0)
    delivery.more |= {"records": True}
    assert delivery.start().wait(DEADLINE_S) == 1
    assert re.search(r"R674 .*it never takes message \d+ of this sink|R674 ", delivery.findings()), delivery.findings()
    assert delivery.committed() == []
    delivery.more["sets_aside"] = "0/sinks/0"
    delivery.start(WALLAROO_FAULT=f"egress.kafka_{drawn.choice(POINTS)}")  # it is killed there, and started again
    delivery.wait(lambda: read_position(delivery.root / "outbox", PORT).messages == len(records), "all to be delivered")
    good = [(record.key, record.value) for record in records if record not in chosen]
    assert Counter(delivery.committed()) == Counter(good)
    letters = read_letters(delivery.root)
    for letter in (found := {int(letter.id.partition("-")[0]): letter.record for letter in letters}).values():
        assert letter.error.startswith(f"topic {delivery.topic} does not take it: "), letter.error
    assert sorted(found) == [number for number, record in enumerate(records) if record in chosen]
    for number, letter in found.items():
        record = records[number]
        assert letter.sequence == positions[number]
        assert (letter.input, letter.key, letter.has_key) == (
            record.value or b"", record.key or b"", record.key is not None
        )  # fmt: skip

    def counts() -> list[int | None]:
        (sink,) = delivery.status().get("sinks", [{}])
        return [sink.get("messages"), sink.get("refused")]

    delivery.wait(lambda: counts() == [len(good), len(chosen)], "the counts")
    publish_records(delivery, [drawn.choice(NEVER), drawn.choice(NEVER)], [8, 8], batch=1)
    delivery.wait(lambda: counts() == [len(good), len(chosen) + 2], "the counts of the next transaction")
    fixes = [each["fix"] for each in delivery.status()["diagnostics"] if each["code"] == "R674"]
    assert fixes and all(f"`wallaroo dead-letters show {delivery.root} " in fix for fix in fixes)
    delivery.close()
    (delivery.root / "egress.json").unlink()
    delivery.start()
    delivery.wait(lambda: counts() == [len(good), len(chosen) + 2], "the counts of the next egress")


def publish_records(delivery: Delivery, records: Sequence[KafkaRecord], positions: Sequence[int], batch: int) -> None:
    """Publish whole records that derive from messages of these positions."""
    writer, values = StagingWriter(delivery.root / "staging", "q", batch, 0, batch), map(write_record, records)
    offsets = [position - positions[0] for position in positions]
    writer.write(PORT, encode_frame([*values], port=PORT, sequence=positions[0], sequences=offsets))
    delivery.outbox.publish("q", batch, writer.finish())


def test_a_topic_that_takes_larger_records_during_the_run(delivery: Delivery) -> None:
    delivery.topic += "-growing"
    create_topic(delivery.broker.cluster, delivery.topic, PARTITIONS, 1, {"max.message.bytes": "2000"})
    delivery.more |= {"records": True, "sets_aside": "0/sinks/0"}
    publish_records(delivery, [KafkaRecord(key=b"k", value=b"small")], [0], batch=0)
    delivery.start()
    delivery.wait(lambda: len(delivery.committed()) == 1, "the small record")
    delivery.broker.alter(delivery.topic, "max.message.bytes", "9000")
    publish_records(delivery, [KafkaRecord(key=b"k", value=bytes(5000))], [1], batch=1)
    delivery.wait(lambda: read_position(delivery.root / "outbox", PORT).messages == 2, "all to be delivered")
    assert [len(value or b"") for _, value in delivery.committed()] == [5, 5000]
    assert delivery.findings() == ""


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
        ({"kafka.enable.idempotence": "false"}, 'R716 an option of sink "out" is not usable; '),
    ],
)
def test_options_that_the_client_has_not(options: dict[str, str], said: str, delivery: Delivery) -> None:
    delivery.options = options
    assert delivery.start().wait(DEADLINE_S) == 1
    assert said in delivery.findings()


@pytest.mark.parametrize(("pause_ms", "least", "most"), [("", 0, 10), ("100", 50, 150)])
def test_a_transaction_does_not_wait_for_the_one_before(
    pause_ms: str, least: int, most: int, broker: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    """The broker refuses the first request of a transaction that follows at once, and the client asks again."""
    broker.create(topic := f"at-once-{pause_ms}", PARTITIONS)
    options = {"kafka.debug": "protocol", "kafka.log_level": "7"}  # its log has the pause
    options |= {"kafka.retry.backoff.ms": pause_ms} if pause_ms else {}
    target = pb.KafkaTopic(brokers=[broker.address], topic=topic, options=options)
    session, number, pauses = TransactionalSession(kafka_client("test"), target, "out", topic), 0, list[str]()
    deadline = time.monotonic() + DEADLINE_S
    while not pauses:
        assert time.monotonic() < deadline, "the broker refuses nothing"
        number += 1
        session.write([RecordColumns([b"%d" % number], [b"key"])], SinkPosition(messages=number))
        pauses = re.findall(r"Retrying AddOffsetsToTxnRequest .* in (\d+)ms", capfd.readouterr().err)
    session.close()
    assert all(least <= int(each) <= most for each in pauses), pauses


def test_a_few_records_without_a_transaction_are_sent_at_once(broker: Broker) -> None:
    broker.create("few", PARTITIONS)
    target = pb.KafkaTopic(brokers=[broker.address], topic="few", options={"kafka.linger.ms": "1000"})
    session = ProducerSession(kafka_client("test"), target, "out")
    session.write([RecordColumns([b"0"], [b"key"])], SinkPosition(messages=1))  # connects to the broker
    begin = time.monotonic()
    for number in range(2, 42):
        session.write([RecordColumns([b"%d" % number], [b"key"])], SinkPosition(messages=number))
    assert time.monotonic() - begin < 2.0  # 4 s if each write waited for `linger.ms`
    session.close()


def test_a_position_that_does_not_fit(delivery: Delivery) -> None:
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    delivery.close()
    outbox = delivery.root / "outbox"
    position = read_position(outbox, PORT)
    write_position(outbox, PORT, SinkPosition(9, 0, 0, 90, 900, position.sender), durable=True)
    assert delivery.start().wait(DEADLINE_S) == 1
    assert "does not fit the outbox; Kafka has 50 messages; 90 were delivered" in delivery.findings()
    # An older copy of the outbox: what Kafka has was published after it.
    (outbox / "log").unlink()
    write_position(outbox, PORT, SinkPosition(sender=position.sender), durable=True)
    assert delivery.start().wait(DEADLINE_S) == 1
    assert "does not fit the outbox; Kafka has 50 messages, which the outbox has not" in delivery.findings()
    # Kafka has forgotten the group, and the egress was killed.
    write_position(outbox, PORT, SinkPosition(sender="forgotten"), durable=True)
    assert delivery.start().wait(DEADLINE_S) == 1
    assert "R731" in delivery.findings()
    assert "Kafka has forgotten it, and may have records after the outbox's position" in delivery.findings()
