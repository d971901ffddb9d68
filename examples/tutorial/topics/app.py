"""Reads orders from a topic of Kafka, and writes each customer's total to another one, exactly once."""

import json

import wallaroo

BROKERS = [("127.0.0.1", 9092)]


def application_setup(args):
    """Both topics are created where they do not exist; a state step after a topic has the keys of its records."""
    source = wallaroo.KafkaSourceConfig("orders", BROKERS, "Warn", Orders, create={"partitions": 2})
    sink = wallaroo.KafkaSinkConfig(
        "totals", BROKERS, "Warn", 5, 1_000_000, encode, exactly_once=True, create={"like": "orders"}
    )
    return wallaroo.build_application("Totals", wallaroo.source("orders", source).to(add).to_sink(sink))


class Orders:
    """The decoder of the topic."""

    def decode(self, value):
        """Return the order; a value that is no order is a dead letter."""
        order = json.loads(value)
        return order["customer"], int(order["cents"])


class Total:
    """The state of a customer."""

    def __init__(self):
        self.cents = 0


@wallaroo.state_computation("add", Total)
def add(order, total):
    """Return the customer and the total so far."""
    customer, cents = order
    total.cents += cents
    return customer, total.cents


@wallaroo.encoder
def encode(result):
    """Return value and key of a record."""
    customer, cents = result
    return str(cents).encode(), customer.encode()
