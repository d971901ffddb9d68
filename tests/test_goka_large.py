"""Values below and above what a broker takes: emitters, topics, inputs, tables, joins, loops and outputs of groups."""

import random
import string
import subprocess
from collections import Counter

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from support.kafka import Broker
from support.kafka_application import Application, Make, application
from support.run import READY, TESTS, WALLAROO, wait_until
from wallaroo import goka
from wallaroo.message.kafka_record import MAX_RECORD_BYTES, too_large
from wallaroo_runtime.kafka.record import follow
from wallaroo_runtime.kafka.topic import create_topic

pytestmark = pytest.mark.kafka
__all__ = ["application"]  # the fixture
PROGRAMS = {"": TESTS / "support" / "goka_large.py", "go-": TESTS / "support" / "goka_sizes"}
WAIT_S = 300.0
HUGE, TIGHT_BYTES, MOST_READ = 3_000_000, 1000, 16 << 20


def largest(limit: int, key: bytes | None = b"k", headers: tuple[tuple[str, bytes | None], ...] = ()) -> int:
    """Return how long the value of a record may be."""
    return next(size for size in range(limit, 0, -1) if not too_large(limit, key, bytes(size), headers))


MOST = largest(MAX_RECORD_BYTES)


def outcome(
    producer: Producer, topic: str, key: bytes | None, value: bytes, headers: list[tuple[str, bytes | None]]
) -> int:
    """Write a record; returns the code of its error, 0 for none."""
    codes: list[int] = []
    producer.produce(
        topic, value, key, headers=headers, on_delivery=lambda error, _: codes.append(error.code() if error else 0)
    )
    assert producer.flush(60) == 0
    return codes[0]


def test_a_broker_counts_bytes_as_we_do(broker: Broker) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draw, limits = random.Random(seed), (300, 5000, MAX_RECORD_BYTES)
    producer = Producer(
        {"bootstrap.servers": broker.address, "message.max.bytes": 2 * MAX_RECORD_BYTES, "linger.ms": 0}
    )
    for limit in limits:
        create_topic(broker.cluster, f"limit-{limit}", 1, 1, {"max.message.bytes": str(limit)})
    for number in range(30):
        limit = limits[number % len(limits)]
        key = draw.choice([None, b"", draw.randbytes(draw.randrange(1, 100))])
        headers: list[tuple[str, bytes | None]] = [
            ("".join(draw.choices(string.ascii_letters + "é", k=3)), draw.choice([None, b"", draw.randbytes(9)]))
            for _ in range(draw.randrange(4))
        ]
        size = largest(limit, key, tuple(headers))
        assert outcome(producer, f"limit-{limit}", key, bytes(size), headers) == 0, (limit, key, headers)
        refused = outcome(producer, f"limit-{limit}", key, bytes(size + 1), headers)
        assert refused == KafkaError.MSG_SIZE_TOO_LARGE, (limit, key, headers)


def test_an_emitter_s_promise_has_the_error(broker: Broker) -> None:
    broker.create("emitted")
    with goka.Emitter([broker.address], "emitted", goka.String()) as emitter:
        promises = [emitter.emit("k", "x" * size) for size in (1, MOST, MOST + 1, 2 * MOST, 2)]
    for at, promise in enumerate(promises):
        error = promise.exception(60)
        assert isinstance(error, KafkaException) == (at in (2, 3)), error
    lengths = [
        len(record.value or b"") for record in follow(broker.cluster, "emitted", from_beginning=True, to_end=True)
    ]
    assert lengths == [1, MOST, 2]


@pytest.mark.parametrize("settings", [{}, {"max.message.bytes": "2000000"}], ids=["default", "2 MB"])
def test_topics_emit_and_tail(settings: dict[str, str], broker: Broker) -> None:
    topic = f"lines-{len(settings)}"
    create_topic(broker.cluster, topic, 1, 1, settings)
    limit = int(settings.get("max.message.bytes", MAX_RECORD_BYTES))
    lines = ["k\tfirst", "k\t" + "x" * largest(limit), "k\t" + "x" * (largest(limit) + 1), "k\tlast"]
    command = [WALLAROO, "topics", "emit", topic, "--brokers", broker.address]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    said = f"record 3 is not written to {topic}: it has {limit + 1} bytes, the topic takes {limit}; "
    assert said + "records before it: 2 written" in done.stderr
    command = [WALLAROO, "topics", "tail", topic, "--to-end", "--brokers", broker.address]
    tail = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [len(line.split(" ")[2]) for line in tail.stdout.splitlines()] == [5, largest(limit)]


def alter(broker: Broker, topic: str, limit: int) -> None:
    """Set how large the records of a topic may be."""
    entry = ConfigEntry("max.message.bytes", str(limit), incremental_operation=AlterConfigOpType.SET)
    place = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": broker.address})  # the answer comes as long as there is the client
    client.incremental_alter_configs([place])[place].result(60)


def start(running: Application, times: int) -> None:
    running.start()
    process = running.process
    assert process is not None
    wait_until(lambda: running.output().count(READY) >= times or process.poll() is not None, running.output, WAIT_S)


def sizes(broker: Broker, topic: str) -> Counter[tuple[bytes | None, int]]:
    """Return the keys and lengths of a topic's records, of those that were committed."""
    records = follow(broker.cluster, topic, from_beginning=True, to_end=True)
    return Counter((record.key, len(record.value or b"")) for record in records)


@pytest.mark.jvm
@pytest.mark.parametrize("prefix", ["", pytest.param("go-", marks=pytest.mark.long)], ids=["python", "go"])
def test_a_group_with_values_of_all_sizes(
    prefix: str, broker: Broker, application: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = (f"{prefix}large-{name}" for name in ("in", "ask", "out", "tight"))
    requests, asks, out, tight = topics
    create_topic(broker.cluster, requests, 3, 1, {"max.message.bytes": str(2 * MOST_READ)})
    create_topic(broker.cluster, tight, 2, 1, {"max.message.bytes": str(TIGHT_BYTES)})
    for topic in (asks, out):
        broker.create(topic, 2)
    monkeypatch.setenv("BROKERS", broker.address)
    running = application(PROGRAMS[prefix], *([] if prefix else [broker.address]))
    start(running, 1)
    asked = {
        "b": f"{out} {MOST}", "c": f"{out} {MOST + 1}", "d": f"table {MOST}", "e": f"table {MOST + 1}",
        "f": f"loop {MOST}", "g": f"loop {MOST + 1}", "h": "read " + "x" * (HUGE - 1000), "i": "x" * MOST_READ,
    }  # fmt: skip
    with goka.Emitter(
        [broker.address], requests, goka.String(), options={"message.max.bytes": 2 * MOST_READ}
    ) as emitter:
        for number in range(100):
            emitter.emit(f"count-{number % 5}", "count")
            emitter.emit("t", f"{tight} 100")  # fifty to a partition: together they are more than it takes
        for key, message in asked.items():
            emitter.emit(key, message)
    expected = {f"count-{number}": "20" for number in range(5)}
    expected |= {"d": "x" * MOST, "f": f"looped {MOST}", "h": str(HUGE - 995)}
    table = goka.View([broker.address], goka.group_table(f"{prefix}large"), goka.String())
    with table, goka.Emitter([broker.address], asks, goka.String()) as emitter:
        table.wait_running(WAIT_S)
        wait_until(lambda: dict(table.iterate()) == expected, running.output, WAIT_S)
        outputs = Counter({(b"b", MOST): 1})
        wait_until(lambda: sizes(broker, out) == outputs, running.output, WAIT_S, every=0.5)
        wait_until(lambda: sizes(broker, tight) == {(b"t", 100): 100}, running.output, WAIT_S, every=0.5)
        said = f"has {MAX_RECORD_BYTES + 1} bytes; at most {MAX_RECORD_BYTES} are possible; split its value, or raise "
        wait_until(lambda: said in running.output(), running.output, WAIT_S)
        assert "R606" in running.output() and f" bytes; at most {MOST_READ:,} are taken" in running.output()

        def is_joined() -> bool:
            emitter.emit_sync("d", "how much?")
            return (b"d", len(str([MOST, MOST]))) in sizes(broker, out)

        wait_until(is_joined, running.output, WAIT_S, every=2.0)
    an_output_that_its_topic_does_not_take(broker, running, prefix)


def an_output_that_its_topic_does_not_take(broker: Broker, running: Application, prefix: str) -> None:
    """The run ends, and begins again where it was when the topic takes more; nothing is lost."""
    requests, tight = f"{prefix}large-in", f"{prefix}large-tight"
    with goka.Emitter([broker.address], requests, goka.String()) as emitter:
        emitter.emit("t", f"{tight} 5000")
        emitter.emit("count-0", "count")
    assert running.wait() == 1, running.output()
    said = f'R674 sink "{tight}" cannot be written, kafka {tight}; it never takes message '
    assert said in running.output()
    alter(broker, tight, 10_000)
    start(running, 2)
    expected = {(b"t", 100): 100, (b"t", 5000): 1}
    wait_until(lambda: sizes(broker, tight) == expected, running.output, WAIT_S, every=0.5)
    with goka.View([broker.address], goka.group_table(f"{prefix}large"), goka.String()) as table:
        table.wait_running(WAIT_S)
        wait_until(lambda: table.get("count-0") == "21", running.output, WAIT_S)
    assert running.end() == 0, running.output()
