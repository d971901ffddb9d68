"""Tests of the totals, without Kafka and without Spark."""

from pathlib import Path

from wallaroo import KafkaRecord
from wallaroo.testing import run

APP = Path(__file__).parent / "app.py"


def order(customer: str, cents: int) -> KafkaRecord:
    """Return a record of the topic "orders"."""
    value = f'{{"customer": "{customer}", "cents": {cents}}}'
    return KafkaRecord("orders", customer.encode(), value.encode())


def test_each_customer_has_a_total() -> None:
    """A value that is no order becomes a dead letter."""
    with run(APP) as app:
        app.produce([order("ann", 300), order("bob", 20), order("ann", 50)])
        app.produce(KafkaRecord("orders", b"ann", b"free"))
        totals = sorted((record.key, record.value) for record in app.topic("totals"))
        assert totals == [(b"ann", b"300"), (b"ann", b"350"), (b"bob", b"20")]
        assert [letter.step for letter in app.dead_letters] == ["orders"]
