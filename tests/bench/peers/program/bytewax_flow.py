"""The work of `make bench-peers` on Bytewax: recovery is on, output is at least once."""

import json
import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow

BROKERS = [os.environ["BROKER"]]
WORK = os.environ["WORK"]


def split(record):
    return [(word, "") for word in record.value.decode().split()]


def keyed(record):
    key, _, payload = record.value.decode().partition(" ")
    return key, payload


def count(number, payload):
    number = (number or 0) + 1
    return number, f"{number} {payload}".rstrip()


def counted(pair):
    key, text = pair
    return KafkaSinkMessage(key.encode(), f"{key} => {text}".encode())


def convert(record):
    reading = json.loads(record.value)
    converted = {
        "id": reading["id"],
        "user": reading["user"].upper(),
        "celsius": (reading["fahrenheit"] - 320) * 50 // 9,
        "place": reading["place"],
    }
    return KafkaSinkMessage(reading["user"].encode(), json.dumps(converted).encode())


flow = Dataflow("peers")
records = op.input("in", flow, KafkaSource(BROKERS, [os.environ["INPUT"]], batch_size=1000))
if WORK == "json":
    results = op.map("convert", records, convert)
else:
    pairs = op.flat_map("split", records, split) if WORK == "words" else op.map("key", records, keyed)
    results = op.map("form", op.stateful_map("count", pairs, count), counted)
op.output("out", results, KafkaSink(BROKERS, os.environ["OUTPUT"], add_config={"linger.ms": "5"}))
