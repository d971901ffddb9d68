"""Reads orders from a topic of Kafka, and writes each customer's total to another topic, exactly once."""

import json

import wallaroo

BROKERS = "127.0.0.1:9092"


def application_setup(args: list[str]) -> wallaroo.Application:
    """Declare both topics, which the run creates if need be. The key of a record is the key of the state in `add`."""
    orders = wallaroo.KafkaSourceConfig("orders", BROKERS, decoder=decode, create={"partitions": 2})
    totals = wallaroo.KafkaSinkConfig("totals", BROKERS, encoder=encode, exactly_once=True, create={"like": "orders"})
    return wallaroo.build_application("Totals", wallaroo.source("orders", orders).to(add).to_sink(totals))


@wallaroo.decoder
def decode(value: bytes) -> tuple[str, int]:
    """Return customer and cents of an order. A value that is no order raises an error and becomes a dead letter."""
    order = json.loads(value)
    return order["customer"], int(order["cents"])


class Total:
    """The state of a customer: the total so far."""

    def __init__(self) -> None:
        self.cents = 0


@wallaroo.state_computation("add", Total)
def add(order: tuple[str, int], total: Total) -> tuple[str, int]:
    """Return the customer and the total so far."""
    customer, cents = order
    total.cents += cents
    return customer, total.cents


@wallaroo.encoder
def encode(result: tuple[str, int]) -> tuple[bytes, bytes]:
    """Return the value and the key of an output record: the total and the customer."""
    customer, cents = result
    return str(cents).encode(), customer.encode()
