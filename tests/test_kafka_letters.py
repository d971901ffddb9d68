"""Dead letters of Kafka's messages on a real broker: each says which record it is, in both modes and languages."""

import random
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.kafka import Broker
from support.kafka_application import PARTITIONS, Make, application, document
from support.manifest import put_manifest
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.value.kafka_record import write_record
from wallaroo_runtime.checkpoint.dead_letter import FOLDER, read_letters
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.kafka.record import follow

pytestmark = pytest.mark.kafka
__all__ = ["application"]  # the fixture

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
    broker.create(f"{name}-in", PARTITIONS)
    broker.create(f"{name}-out", PARTITIONS)
    program = tmp_path / "app" / {"python": "app.py", "go": "main.go"}[language]
    program.parent.mkdir()
    program.write_text(CHECKS[language])
    app = program.parent if language == "go" else program
    running = application(app, name, broker.address, content)
    offsets, expected = [0] * PARTITIONS, []

    def write(count: int, values: str) -> None:
        """Write records, of which some fail at the decoder and some at the step."""
        producer = Producer({"bootstrap.servers": broker.address})
        for _ in range(count):
            partition, value = draw.randrange(PARTITIONS), draw.choice(values)
            key = draw.choice(["ann", "bob", None])
            producer.produce(f"{name}-in", value, key, partition)
            if value in "0x":
                step = {"0": "check", "x": "clicks"}[value]
                expected.append((step, f"{name}-in", partition, offsets[partition], repr((key or "").encode())))
            offsets[partition] += 1
        assert producer.flush(60) == 0

    def found() -> list[tuple[str, str, int, int, str]]:
        letters = [letter.record for letter in read_letters(tmp_path / "checkpoint")]
        assert {letter.origin.source for letter in letters} == {"clicks"}
        places = [(letter.step, letter.origin) for letter in letters]
        return [(step, at.topic, at.partition, at.offset, repr(at.key)) for step, at in places]

    for mode in ("microbatch", "realtime"):
        write(40, "170x")
        (running.directory / "output").write_text("")
        running.start("--fresh", "--mode", mode, "--stop-when-idle", "5")
        assert running.wait() == 0, running.output()
        assert sorted(found()) == sorted(expected)
        write(1, draw.choice("0x"))
        _, topic, partition, offset, key = expected[-1]
        running.start("--mode", mode, "--stop-when-idle", "5", "--on-error", "fail")
        assert running.wait() == 1, running.output()
        (told,) = [line for line in running.output().splitlines() if line.startswith("R611")]
        place = f'source "clicks", topic {topic}, partition {partition}, offset {offset}'
        assert f"({place}; " in told if key == "b''" else f"({place}, key {key.removeprefix('b')}; " in told, told


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
        assert capsys.readouterr().err.startswith(said)
    found = follow(broker.cluster, topic, from_beginning=True, to_end=True)
    read = [(each.partition, each.key, each.value, list(each.headers) or None) for each in found]
    assert sorted(read, key=str) == sorted(written, key=str)
