"""The connector programs against real servers: what a server has goes through an application and back."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pika
import psycopg
import pytest
import redis
from confluent_kafka import Consumer, Producer

from support import counterpart
from support.kafka import Broker, free_port
from support.run import STOP_S, WAIT_S, Run, wait_until

pytestmark = pytest.mark.connector
APP = Path(__file__).parent / "connector" / "app.py"
LINES = ("udp", "redis", "postgres", "rabbitmq", "kinesis", "s3", "kafka")
MESSAGES = [f"k{number} é" for number in range(20)]
EXPECTED = [f"{message}!" for message in MESSAGES]


class Program:
    """A connector program in a process of its own, started as Wallaroo's users do."""

    def __init__(self, name: str, connector: str, ports: str, environment: dict[str, str], **params: object) -> None:
        options = [text for key, value in params.items() for text in (f"--{connector}-{key}", str(value))]
        command = [
            Path(sys.executable).with_name(name), "--application-module", APP, "--connector", connector, *options,
            "--ports", ports,
        ]  # fmt: skip
        self.name, self.said = name, ""
        self.process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | environment, start_new_session=True,
        )  # fmt: skip
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        wait_until(lambda: bool(self.said), lambda: f"{name} to say that it is ready")
        assert self.process.poll() is None, f"{name} ended: {self.said}"

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def stop(self) -> None:
        """End it as an operator does; it must say that all is well."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(STOP_S) == 0, f"{self.name}: {self.said}"

    def close(self) -> None:
        """End it by force if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(STOP_S)
        self.thread.join(STOP_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Application:
    """The running application, and the programs next to it."""

    def __init__(self, run: Run, ports: str) -> None:
        self.run, self.ports = run, ports
        self.programs: list[Program] = []

    def start(self, name: str, connector: str, environment: dict[str, str] | None = None, **params: object) -> Program:
        """Start a program; returns when it has said that it is ready."""
        self.programs.append(Program(name, connector, self.ports, environment or {}, **params))
        return self.programs[-1]

    def wait(self, holds: Callable[[], bool], what: Callable[[], str]) -> None:
        """Wait for an outcome of the run and its programs."""

        def said() -> str:
            return f"{what()}; " + "; ".join(f"{each.name}: {each.said}" for each in self.programs)

        self.run.wait_while_alive(holds, said)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, str]]:
    """Run the application once for all tests."""
    names = [f"{line}_{way}" for line in LINES for way in ("in", "out")] + ["redis_hash"]
    ports = json.dumps({name: free_port() for name in names})
    with Run(APP, None, tmp_path_factory.mktemp("run") / "checkpoint", "--ports", ports, source="") as run:
        yield run.ready(), ports
        assert run.stop() == 0, run.said()
        assert run.last("dead_letters") == 0


@pytest.fixture
def application(running: tuple[Run, str]) -> Iterator[Application]:
    found = Application(*running)
    yield found
    for program in found.programs:
        program.close()


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, str], Callable[[str], Any]]]:
    """Give the environment in which programs find the server, and what makes a client of it."""
    with counterpart.aws(tmp_path_factory.mktemp("aws")) as environment:
        where = {
            "endpoint_url": environment["AWS_ENDPOINT_URL"], "region_name": environment["AWS_DEFAULT_REGION"],
            "aws_access_key_id": "test", "aws_secret_access_key": "test",
        }  # fmt: skip
        yield environment, lambda service: boto3.client(service, **where)


def test_udp(application: Application) -> None:
    with contextlib.ExitStack() as stack:
        receiver, sender = (
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)
        )  # fmt: skip
        receiver.bind(("127.0.0.1", 0))
        out = application.start("udp_sink", "udp_out", host="127.0.0.1", port=receiver.getsockname()[1])
        port = free_port()
        feed = application.start("udp_source", "udp_in", host="127.0.0.1", port=port)
        got: list[bytes] = []
        for message in ["  white space \n", *MESSAGES]:
            sender.sendto(message.encode(), ("127.0.0.1", port))

        def arrived() -> bool:
            while select.select([receiver], [], [], 0)[0]:
                got.append(receiver.recv(65536))
            return len(got) > len(MESSAGES)

        application.wait(arrived, lambda: f"{len(MESSAGES) + 1} datagrams, have {len(got)}")
        assert [each.decode() for each in got] == ["  white space \n!", *EXPECTED]
        feed.stop()
        out.stop()


def test_redis(application: Application, tmp_path: Path) -> None:
    with counterpart.redis(tmp_path) as port, redis.Redis(port=port) as client, client.pubsub() as subscription:
        subscription.subscribe("results")
        at = {"host": "127.0.0.1", "port": port}
        out = application.start("redis_publisher_sink", "redis_out", topic="results", **at)
        table = application.start("redis_hash_sink", "redis_hash", key="latest", **at)
        feed = application.start("redis_subscriber_source", "redis_in", topic="feed", **at)
        application.wait(lambda: client.publish("feed", MESSAGES[0]) == 1, lambda: "a subscriber")
        for message in [*MESSAGES[1:], "k3 again"]:
            assert client.publish("feed", message) == 1
        got: list[str] = []

        def arrived() -> bool:
            while (found := subscription.get_message(ignore_subscribe_messages=True, timeout=0.05)) is not None:
                got.append(found["data"].decode())
            return len(got) > len(MESSAGES) and client.hlen("latest") == len(MESSAGES)

        application.wait(arrived, lambda: f"messages of the channel and fields, have {got}")
        assert got == [*EXPECTED, "k3 again!"]
        wanted = {line.split()[0].encode(): line.encode() for line in [*EXPECTED, "k3 again!"]}
        application.wait(lambda: client.hgetall("latest") == wanted, lambda: f"{client.hgetall('latest')}")
        for program in (feed, table, out):
            program.stop()


def test_postgres(application: Application, tmp_path: Path) -> None:
    with counterpart.postgres(tmp_path / "log") as where, psycopg.connect(where, autocommit=True) as database:
        database.execute("CREATE SCHEMA shop")
        database.execute('CREATE TABLE shop."order" (name text, number int)')
        database.execute("CREATE TABLE results (id serial, number int, name text)")
        out = application.start(
            "postgres_insert_sink", "postgres_out", connection=where, table="results", columns="name, number"
        )
        feed = application.start(
            "postgres_notify_source", "postgres_in", connection=where, table="shop.order", channel="Orders"
        )
        rows = [(f"é {number}", number) for number in range(20)]
        with database.cursor() as cursor:
            cursor.executemany('INSERT INTO shop."order" VALUES (%s, %s)', rows)

        def got() -> list[tuple[Any, ...]]:
            return database.execute("SELECT name, number FROM results ORDER BY id").fetchall()

        application.wait(lambda: len(got()) >= len(rows), lambda: f"{len(rows)} rows, have {len(got())}")
        assert got() == [(name, number + 1) for name, number in rows]
        feed.stop()
        out.stop()


def test_rabbitmq(application: Application, tmp_path: Path) -> None:
    with counterpart.amqp(tmp_path) as url:
        out = application.start("rabbitmq_sink", "rabbitmq_out", amqpurl=url, queue="results")
        feed = application.start("rabbitmq_source", "rabbitmq_in", amqpurl=url, queue="feed")
        connection = pika.BlockingConnection(pika.URLParameters(url))
        channel = connection.channel()
        for message in MESSAGES:
            channel.basic_publish("", "feed", message.encode())
        got: list[bytes] = []

        def arrived() -> bool:
            while (found := channel.basic_get("results", auto_ack=True))[0] is not None:
                got.append(found[2])
            return len(got) >= len(MESSAGES)

        application.wait(arrived, lambda: f"{len(MESSAGES)} messages of the queue, have {len(got)}")
        assert [each.decode() for each in got] == EXPECTED
        feed.stop()
        assert channel.queue_declare("feed", passive=True).method.message_count == 0
        connection.close()
        out.stop()


def test_kinesis(application: Application, aws: Any) -> None:
    environment, client = aws
    kinesis = client("kinesis")
    for name in ("feed", "results"):
        kinesis.create_stream(StreamName=name, ShardCount=1)
    (shard,) = kinesis.list_shards(StreamName="feed")["Shards"]
    out = application.start("kinesis_sink", "kinesis_out", environment, stream="results")
    feed = application.start("kinesis_source", "kinesis_in", environment, stream="feed", shard=shard["ShardId"])
    for message in MESSAGES:
        kinesis.put_record(StreamName="feed", PartitionKey="k", Data=message.encode())
    (shard,) = kinesis.list_shards(StreamName="results")["Shards"]

    def got() -> list[tuple[str, str]]:
        at = kinesis.get_shard_iterator(
            StreamName="results", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        records = kinesis.get_records(ShardIterator=at)["Records"]
        return [(record["PartitionKey"], record["Data"].decode()) for record in records]

    application.wait(lambda: len(got()) >= len(MESSAGES), lambda: f"{len(MESSAGES)} records, have {len(got())}")
    assert got() == [(line.split()[0], line) for line in EXPECTED]
    feed.stop()
    out.stop()


def test_s3(application: Application, aws: Any) -> None:
    environment, client = aws
    s3 = client("s3")
    s3.create_bucket(Bucket="feed", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})

    def put(number: int) -> None:
        s3.put_object(Bucket="feed", Key=f"new/{number:03}", Body=MESSAGES[number].encode())

    def names() -> list[str]:
        return [entry["Key"] for entry in s3.list_objects_v2(Bucket="results").get("Contents", ())]

    s3.put_object(Bucket="feed", Key="new/0", Body=b"left out")
    s3.put_object(Bucket="feed", Key="old/999", Body=b"left out")
    put(0)
    out = application.start("s3_bucket_sink", "s3_out", environment, bucket="results")
    feed = application.start(
        "s3_bucket_source", "s3_in", environment, bucket="feed", prefix="new/", **{"start-after": "new/0"}
    )
    application.wait(lambda: names() == ["k0"], lambda: f"the first object, have {names()}")
    for number in range(1, len(MESSAGES)):
        put(number)
    application.wait(lambda: len(names()) >= len(MESSAGES), lambda: f"{len(MESSAGES)} objects, have {len(names())}")
    got = {name: s3.get_object(Bucket="results", Key=name)["Body"].read().decode() for name in names()}
    assert got == {line.split()[0]: line for line in EXPECTED}
    feed.stop()
    out.stop()


def test_kafka(application: Application, tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.start()
    try:
        for topic in ("feed", "results"):
            broker.create(topic)
        group = {"bootstrap_brokers": broker.address, "consumer_group": "group", "auto_offset_reset": "earliest"}
        out = application.start("kafka_sink", "kafka_out", topic="results", bootstrap_brokers=broker.address)
        feed = application.start("kafka_source", "kafka_in", topics="feed", **group)
        producer = Producer({"bootstrap.servers": broker.address})
        first, rest = MESSAGES[:5], MESSAGES[5:]
        with contextlib.closing(
            Consumer({"bootstrap.servers": broker.address, "group.id": "test", "auto.offset.reset": "earliest"})
        ) as consumer:
            consumer.subscribe(["results"])
            got: list[tuple[str, str]] = []

            def arrived(count: int) -> bool:
                while (record := consumer.poll(0.1)) is not None:
                    assert record.error() is None
                    got.append((record.key().decode(), record.value().decode()))
                return len(got) >= count

            for message in first:
                producer.produce("feed", message.encode())
            producer.flush(WAIT_S)
            application.wait(lambda: arrived(5), lambda: f"5 records, have {got}")
            # The group goes on after what it has read.
            feed.stop()
            for message in rest:
                producer.produce("feed", message.encode())
            producer.flush(WAIT_S)
            feed = application.start("kafka_source", "kafka_in", topics="feed", **group)
            application.wait(lambda: arrived(len(MESSAGES)), lambda: f"{len(MESSAGES)} records, have {got}")
            assert got == [(line.split()[0], line) for line in EXPECTED]
        feed.stop()
        out.stop()
    finally:
        broker.stop()


def test_a_server_that_is_not_there(application: Application) -> None:
    command = [
        Path(sys.executable).with_name("redis_hash_sink"), "--application-module", APP, "--connector", "redis_hash",
        "--redis_hash-key", "k", "--redis_hash-port", str(free_port()), "--ports", application.ports,
    ]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 1
    assert done.stderr.startswith("R692 the connector ended; ConnectionError: Error 111 connecting to localhost:")
