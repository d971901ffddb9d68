"""Tests of the alerts, without Spark. Rows are JSON, as Spark and the worker exchange them."""

import json
from pathlib import Path

from wallaroo.testing import run

APP = Path(__file__).parent / "app.py"


def row(customer: str | None, amount: float) -> bytes:
    """Return the row of a customer's order."""
    return json.dumps({"customer": customer, "amount": amount, "at": "2026-01-31T12:00:00Z"}).encode()


def test_what_is_far_above_the_usual_is_an_alert() -> None:
    """Only an order far above the average causes an alert, so the first order of a customer causes none."""
    with run(APP) as app:
        app.send([row("ann", 10), row("ann", 20), row("ann", 30), row("ann", 61), row("bob", 1000)])
        (alert,) = map(json.loads, app.output())
        assert (alert["customer"], alert["amount"], alert["usual"]) == ("ann", 61, 20)
        assert app.state("history", "ann").orders == 4


def test_an_order_of_nothing_is_a_dead_letter() -> None:
    """An order with an amount of 0 becomes a dead letter, and so does a null in a column that does not accept null."""
    with run(APP) as app:
        app.send([row("ann", 0), row(None, 10)])
        assert app.output() == []
        assert [(letter.step, letter.error) for letter in app.dead_letters] == [
            ("history", "ValueError: an order of 0.0"),
            ("orders", 'ValueError: column "customer" is null; declare it Optional to take that'),
        ]
