"""Dead letters of Kafka's messages on a real broker: each says which record it is, in both modes and languages."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.drawn_group import wait_until_ready
from support.kafka import Broker
from support.kafka_application import PARTITIONS, Make, application, document
from support.kafka_gateway import DEADLINE_S, QUIET, TopicGateway, new_topic
from support.kafka_kill import PROCESSES, REALTIME, kill
from support.manifest import put_manifest
from support.run import wait_until, wallaroo
from wallaroo import goka
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.value.kafka_record import write_record
from wallaroo_runtime.checkpoint.dead_letter import FOLDER, read_letters
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.kafka.frame import encode_headers, whole_value
from wallaroo_runtime.kafka.record import follow
from wallaroo_runtime.kafka.topic import create_topic
from wallaroo_runtime.storage.journal.reader import JournalReader

pytestmark = pytest.mark.kafka
__all__ = ["application"]  # the fixture

LARGE = (16 << 20) + 1  # a byte above the default of max_message_bytes
LARGE_RECORDS = {"message.max.bytes": 2 * LARGE}
LIMIT = 200  # for the bytes of a record
Headers = list[tuple[str, bytes]]
POINTS = ("gateway.after_append", "gateway.after_sync", "gateway.before_publish")
CHECKS = {
    "python": """
import wallaroo

def application_setup(args):
    name, broker, content = args[1:4]
    brokers, content = [tuple(broker.split(":"))], content if content == "record" else None
    source = wallaroo.KafkaSourceConfig(f"{name}-in", brokers, "Warn", Decoder(), content=content)
    sink = wallaroo.KafkaSinkConfig(f"{name}-out", brokers, "Warn", 5, 1_000_000, encode, exactly_once=True)
    return wallaroo.build_application(name, wallaroo.source("clicks", source).to(check).to_sink(sink))

class Decoder:
    def decode(self, value):
        return int(getattr(value, "value", value))

@wallaroo.computation("check")
def check(number):
    return 100 // number

@wallaroo.encoder
def encode(number):
    return str(number).encode(), None
""",
    "go": """
package main

import (
	"context"
	"strconv"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

func setup(args []string) *stream.Application {
	app := stream.New(args[0])
	read := stream.Kafka{Topic: args[0] + "-in", Brokers: args[1:2]}
	write := stream.Kafka{Topic: args[0] + "-out", Brokers: args[1:2], ExactlyOnce: true}
	decode := func(r stream.Record) (int, error) { return strconv.Atoi(string(r.Value)) }
	clicks := stream.From(app, "clicks", stream.KafkaSource(read, decode))
	divide := func(_ context.Context, n int) (int, error) { return 100 / n, nil }
	stream.Map(clicks, "check", divide).To(stream.KafkaSink(write, func(n int) (stream.Record, error) {
		return stream.Record{Value: []byte(strconv.Itoa(n))}, nil
	}))
	return app
}

func main() { worker.Main(setup) }
""",
}


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("language", "content"),
    [("go", "value"), *(pytest.param("python", content, marks=pytest.mark.long) for content in ("value", "record"))],
)
def test_a_dead_letter_says_which_record_it_is_in_both_modes(
    language: str, content: str, broker: Broker, application: Make, tmp_path: Path
) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draw, name = random.Random(seed), f"place-{language}-{content}"
    create_topic(broker.cluster, f"{name}-in", PARTITIONS, 1, {"max.message.bytes": str(2 * LARGE)})
    broker.create(f"{name}-out", PARTITIONS)
    program = tmp_path / "app" / {"python": "app.py", "go": "main.go"}[language]
    program.parent.mkdir()
    program.write_text(CHECKS[language])
    app = program.parent if language == "go" else program
    running = application(app, name, broker.address, content)
    offsets, expected = [0] * PARTITIONS, []

    def write(count: int, values: str) -> None:
        """Write records, of which some fail at the decoder and some at the step. An L is too large for any message."""
        producer = Producer({"bootstrap.servers": broker.address, **LARGE_RECORDS})
        for _ in range(count):
            partition, value = draw.randrange(PARTITIONS), draw.choice(values)
            key = draw.choice(["ann", "bob", None])
            producer.produce(f"{name}-in", value * LARGE if value == "L" else value, key, partition)
            producer.flush(60)
            if value in "0xL":
                step = {"0": "check"}.get(value, "clicks")
                expected.append((step, f"{name}-in", partition, offsets[partition], repr((key or "").encode())))
            offsets[partition] += 1
        assert producer.flush(60) == 0

    def found() -> list[tuple[str, str, int, int, str]]:
        letters = [letter.record for letter in read_letters(tmp_path / "checkpoint")]
        assert {letter.origin.source for letter in letters} == {"clicks"}
        places = [(letter.step, letter.origin) for letter in letters]
        return [(step, at.topic, at.partition, at.offset, repr(at.key)) for step, at in places]

    for mode in ("microbatch", "realtime"):
        write(40, "170x" * 5 + "L")
        write(1, "L")
        (running.directory / "output").write_text("")
        running.start("--fresh", "--mode", mode, "--stop-when-idle", "5")
        assert running.wait() == 0, running.output()
        assert sorted(found()) == sorted(expected)
        counts = re.search(r"stopped: in (\d+)  out (\d+) .*dead letters (\d+)\n", running.output())
        assert counts is not None, running.output()
        assert list(map(int, counts.groups())) == [sum(offsets), sum(offsets) - len(expected), len(expected)]
        write(1, failing := draw.choice("0xLL"))
        _, topic, partition, offset, key = expected[-1]
        running.start("--mode", mode, "--stop-when-idle", "5", "--on-error", "fail")
        assert running.wait() == 1, running.output()
        (told,) = [line for line in running.output().splitlines() if line.startswith("R611")]
        place = f'source "clicks", topic {topic}, partition {partition}, offset {offset}'
        assert f"({place}; " in told if key == "b''" else f"({place}, key {key.removeprefix('b')}; " in told, told
        first = "send the record again in parts, and" if failing == "L" else "correct the user code and run again, or"
        assert f"fix: {first} run with --on-error dead_letter\n" in running.output()
        write(1, "1")  # a run whose messages are all dead letters fails (R741)
        running.start("--mode", mode, "--stop-when-idle", "5", "--on-error", "dead_letter")
        assert running.wait() == 0, running.output()
        assert sorted(found()) == sorted(expected)


@pytest.mark.jvm
@pytest.mark.long
@pytest.mark.parametrize("once", [True, False], ids=["exactly once", "at least once"])
def test_large_records_over_a_kill_of_each_process_and_of_the_broker(
    once: bool, broker: Broker, application: Make, tmp_path: Path
) -> None:
    seed, name = random.randrange(1_000_000), f"killed-{once}"
    print(f"seed {seed}")
    draw, producer = random.Random(seed), Producer({**QUIET, "bootstrap.servers": broker.address, **LARGE_RECORDS})
    create_topic(broker.cluster, f"{name}-in", PARTITIONS, 1, {"max.message.bytes": str(2 * LARGE)})
    broker.create(f"{name}-out", PARTITIONS)
    program = tmp_path / "app.py"
    program.write_text(CHECKS["python"].replace("exactly_once=True", f"exactly_once={once}"))
    running = application(program, name, broker.address, "value")
    places, results, offsets = list[tuple[int, int]](), Counter[bytes](), [0] * PARTITIONS

    def write() -> None:
        for _ in range(draw.randrange(3, 12)):
            partition, value = draw.randrange(PARTITIONS), draw.choice("1247L")
            producer.produce(f"{name}-in", value * LARGE if value == "L" else value, b"k", partition)
            if value == "L":
                places.append((partition, offsets[partition]))
            else:
                results[b"%d" % (100 // int(value))] += 1
            offsets[partition] += 1
            producer.flush(60)

    def is_whole() -> bool:
        records = follow(broker.cluster, f"{name}-out", from_beginning=True, to_end=True)
        found = Counter(record.value for record in records)
        letters = [letter.record.origin for letter in read_letters(tmp_path / "checkpoint")]
        assert not once or found <= results, (found, results)
        assert len(letters) == len({(at.partition, at.offset) for at in letters})
        return found >= results and sorted((at.partition, at.offset) for at in letters) == sorted(places)

    write()
    running.start(*REALTIME)
    wait_until_ready(running)
    for victim in draw.sample(sorted(PROCESSES), len(PROCESSES)):
        write()
        time.sleep(draw.uniform(0.0, 1.5))  # the moment is what is drawn
        print(f"kill {victim}", flush=True)
        kill(running, victim)
    write()
    wait_until(is_whole, running.output, DEADLINE_S, every=1.0)
    assert running.end() == 0, running.output()
    done = wallaroo("state", "rescale", tmp_path / "checkpoint", "--mode", "microbatch")
    assert done.returncode == 0, done.stderr
    write()
    running.start("--mode", "microbatch")
    time.sleep(draw.uniform(0.0, 15.0))
    broker.kill()
    broker.start()
    write()
    wait_until(is_whole, running.output, DEADLINE_S, every=1.0)
    assert running.end() == 0, running.output()


@pytest.mark.parametrize("content", ["value", "record"])
def test_a_replay_writes_the_records_of_the_chosen_letters_again_once(
    content: str, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, path = f"replayed-{content}", "0/sources/0"
    broker.create(topic, PARTITIONS)
    app = document(broker, "replayed")
    app["pipelines"][0]["sources"][0] |= {"topic": topic, **({"content": content} if content == "record" else {})}
    put_manifest(tmp_path, app)
    letters, written = [], list[tuple[int, bytes | None, bytes, list[tuple[str, bytes]] | None]]()
    for number, key in enumerate((b"ann", None, b"bob")):
        value, headers = b"\xff%d" % number, [("via", b"web")] if content == "record" else None
        written.append((2 - number, key, value, headers))
        record = KafkaRecord(topic, key, value, tuple(headers or ()), 7, 2 - number, 13)
        letter = pb.DeadLetter(code="C505", path=path, step="in", sequence=number, error="it failed")
        letter.input = write_record(record) if content == "record" else value
        letter.port = read_manifest(tmp_path).ports.parts[path]
        at = pb.Origin(source="in", topic=topic, partition=2 - number, offset=13, key=key or b"")
        letter.origin.CopyFrom(at)
        letters.append(letter.SerializeToString())
    (tmp_path / FOLDER).mkdir()
    name = "0b9a1f60-1111-2222-3333-444455556666-3-0.frames"
    (tmp_path / FOLDER / name).write_bytes(encode_frame(letters, port=DEAD_LETTER_PORT))
    for chosen, said in (("3-0-0", "1 replayed\n"), ("--all", "2 replayed, 1 were"), ("--all", "0 replayed, 3 were")):
        assert main(["dead-letters", "replay", str(tmp_path), chosen]) == 0
        assert capsys.readouterr().out.startswith(said)
    found = follow(broker.cluster, topic, from_beginning=True, to_end=True)
    read = [(each.partition, each.key, each.value, list(each.headers) or None) for each in found]
    assert sorted(read, key=str) == sorted(written, key=str)


def draw_record(draw: random.Random, size_of: Callable[[bytes, Headers], int]) -> tuple[bytes, Headers]:
    """Return value and headers of a record that is small, much too large, or within some bytes of the limit."""
    headers = [("é" * draw.randrange(3), draw.randbytes(draw.randrange(9))) for _ in range(draw.randrange(3))]
    room = LIMIT - size_of(b"", headers)
    size = draw.choice((0, draw.randrange(room), room - draw.randrange(4), room, room + 1, room + draw.randrange(999)))
    return draw.randbytes(size), headers


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.booleans())
def test_a_record_that_is_too_large_is_a_letter_in_the_journal_once_whatever_kills_the_gateway(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker, seed: int, records: bool
) -> None:
    """Value, key and headers count. Large records come alone, one after the other, and last before a kill."""
    draw, topic = random.Random(seed), new_topic(broker, 2)
    gateway = TopicGateway(tmp_path_factory.mktemp("large"), broker.address)
    gateway.read(topic, {0: 0, 1: 0}, records=records, maxMessageBytes=LIMIT)
    gateway.more["segment_bytes"] = 300  # segments are removed, and the gateway must know their offsets
    producer = Producer({**QUIET, "bootstrap.servers": broker.address})
    written, found, offsets = list[tuple[bytes, bool, int, int]](), list[tuple[bytes, bool, int, int]](), [0, 0]

    def take() -> None:
        for frame in gateway.frames():
            keys = [frame.keys[at] for at in frame.key_indexes]
            if frame.header.port == DEAD_LETTER_PORT:
                (origin,) = (pb.DeadLetter.FromString(value).origin for value in frame.values())
                keys = [origin.key]
                assert (origin.topic, origin.partition, origin.offset) == (topic, *places[origin.key])
            found.extend((key, frame.header.port == DEAD_LETTER_PORT, *places[key]) for key in keys)
        if gateway.read_to:
            JournalReader(gateway.directory / "journal").commit(gateway.read_to)
            gateway.done = gateway.read_to

    for life in range(5):
        for _ in range(draw.randrange(1, 12)):
            key, partition = b"%d-" % len(written) + b"k" * draw.randrange(20), draw.randrange(2)
            place = partition, offsets[partition]

            def size_of(value: bytes, headers: Headers, key: bytes = key, place: tuple[int, int] = place) -> int:
                if not records:
                    return len(key) + len(value) + len(encode_headers(headers))
                now = time.time_ns() // 1_000_000
                return len(whole_value(topic, *place, key=key, value=value, timestamp_ms=now, headers=headers))

            value, headers = draw_record(draw, size_of)
            producer.produce(topic, value, key, partition, headers=headers)
            written.append((key, size_of(value, headers) > LIMIT, *place))
            offsets[partition] += 1
        assert producer.flush(60) == 0
        places = {key: (partition, offset) for key, _, partition, offset in written}
        left = len(written) - len(found)
        is_hit = life < 4 and draw.random() < 0.6
        fault = {"WALLAROO_FAULT": f"{draw.choice(POINTS)}:{draw.randrange(1, 4)}"} if is_hit else {}
        gateway.start(**fault)
        wait_until(lambda left=left: len(gateway.ports()) >= left or not gateway.is_alive(), gateway.log, DEADLINE_S)  # type: ignore[misc]
        take()
        time.sleep(draw.choice((0.0, 1.5)))  # until committed segments are removed
        gateway.end()
        take()
    assert sorted(found) == sorted(written)
    for number in range(2):
        order = [offset for _, _, partition, offset in found if partition == number]
        assert order == sorted(order)


@pytest.mark.parametrize(("codec", "size"), [("none", 101_000_000), ("zstd", 150_000_000)])
def test_a_record_of_more_than_100_mb_is_no_outage(codec: str, size: int, broker: Broker, tmp_path: Path) -> None:
    topic = f"huge-{codec}"
    create_topic(broker.cluster, topic, 1, 1, {"max.message.bytes": str(2 * size)})
    settings = {**QUIET, "bootstrap.servers": broker.address, "message.max.bytes": 2 * size, "compression.type": codec}
    producer = Producer(settings)
    for key, value in enumerate((b"before", bytes(size), b"after")):
        producer.produce(topic, value, key=b"%d" % key)
        assert producer.flush(100) == 0
    gateway = TopicGateway(tmp_path, broker.address)
    port = gateway.read(topic, {0: 0})
    gateway.start()
    gateway.wait_messages(3)
    assert gateway.ports() == [port, DEAD_LETTER_PORT, port]
    assert gateway.findings() == []
    gateway.end()
    found = follow(broker.cluster, topic, from_beginning=True, to_end=True)
    assert [len(record.value or b"") for record in found] == [6, size, 5]
    with goka.View([broker.address], topic, goka.Bytes()) as view:
        view.wait_running(DEADLINE_S)
        assert {key: len(value) for key, value in view.iterate()} == {"0": 6, "1": size, "2": 5}
