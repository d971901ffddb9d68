"""The example of a PySpark job with Kafka, Avro, a schema registry, SQL and a join; other programs write and read."""

import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyspark
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from support.kafka import Broker
from support.registry import schema_registry
from support.spark_job import END_S
from support.tutorial import EXAMPLES
from wallaroo_runtime.spark.source.kafka_connector import connector_jars
from wallaroo_runtime.system.java import QUICK_JAVA
from wallaroo_runtime.system.maven import fetched_jars

pytestmark = [pytest.mark.kafka, pytest.mark.jvm]
SPARK_AVRO, AVRO = "org.apache.spark:spark-avro_2.13", "4.2.0"  # the newest there is; it runs with Spark 4.3, too
ORDER = """{"type": "record", "name": "Order", "fields": [
  {"name": "customer", "type": "string"}, {"name": "amount", "type": "double"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "note", "type": ["null", "string"]}
]}"""
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def registry() -> Any:
    with schema_registry() as url:
        yield url


def order(number: int, customer: str, amount: float) -> dict[str, object]:
    return {"customer": customer, "amount": amount, "at": BEGIN + timedelta(hours=number), "note": None}


def send(broker: Broker, client: SchemaRegistryClient, orders: list[dict[str, object]]) -> None:
    """Send orders as Confluent's client writes them."""
    written = AvroSerializer(client, ORDER)
    producer = Producer({"bootstrap.servers": broker.address})
    for each in orders:
        producer.produce("orders", written(each, SerializationContext("orders", MessageField.VALUE)))
    assert producer.flush(30) == 0


def received(broker: Broker, client: SchemaRegistryClient, count: int) -> list[Any]:
    """Return the alerts as Confluent's client reads them, in order: so many, and no more."""
    read = AvroDeserializer(client)
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["alerts"])
    found = []
    while message := consumer.poll(30 if len(found) < count else 1):
        assert message.error() is None
        found.append(read(message.value(), SerializationContext("alerts", MessageField.VALUE)))
    consumer.close()
    return sorted(found, key=lambda alert: (alert["customer"], alert["ratio"]))


def test_avro_from_topic_to_topic_with_a_registry_sql_and_a_join(broker: Broker, registry: str, tmp_path: Path) -> None:
    jars = [*connector_jars(), *map(str, fetched_jars(f"spark-avro-{AVRO}", (), f"{SPARK_AVRO}:{AVRO}").glob("*.jar"))]
    folder = shutil.copytree(EXAMPLES / "pyspark_job", tmp_path / "job", ignore=shutil.ignore_patterns("out", "__p*"))
    client = SchemaRegistryClient({"url": registry})
    for topic in ("orders", "alerts"):
        broker.create(topic)
    usual = [order(n, customer, 10.0) for n in range(3) for customer in ("ann", "bob")]
    send(broker, client, [*usual, order(3, "ann", 35), order(4, "bob", -1), order(5, "eve", 99)])
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]", "--jars", ",".join(jars)]
    command += ["--driver-java-options", QUICK_JAVA, "avro_job.py", "app.py", broker.address, registry]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYSPARK_PYTHON": sys.executable}, capture_output=True, text=True,
        timeout=END_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert received(broker, client, 1) == [{"customer": "ann", "city": "Oslo", "ratio": 3.5}]
