"""Raises an alert for an order that is far above what its customer has spent so far."""

from dataclasses import dataclass
from datetime import datetime

import wallaroo


@dataclass
class Order:
    """A row of the DataFrame of orders, which may have more columns."""

    customer: str
    amount: float
    at: datetime


@dataclass
class Alert:
    """A row of the DataFrame of alerts."""

    customer: str
    amount: float
    usual: float
    at: datetime


class History:
    """The state of a customer: number and sum of the orders so far."""

    def __init__(self) -> None:
        self.orders = 0
        self.total = 0.0


def application_setup(args: list[str]) -> wallaroo.Application:
    """Declare an application whose source and sink are DataFrames of a PySpark job."""
    orders = wallaroo.source("orders", wallaroo.DataFrameSourceConfig(Order))
    alerts = orders.key_by(customer).to(compare).to_sink(wallaroo.DataFrameSinkConfig(Alert))
    return wallaroo.build_application("alerts", alerts)


@wallaroo.key_extractor
def customer(order: Order) -> str:
    """Return the customer as the key, so that each customer has a history."""
    return order.customer


@wallaroo.state_computation("history", History)
def compare(order: Order, history: History) -> Alert | None:
    """Return an alert if an order is above three times the average of at least three earlier orders."""
    if order.amount <= 0:
        raise ValueError(f"an order of {order.amount}")
    usual = history.total / history.orders if history.orders >= 3 else None
    history.orders += 1
    history.total += order.amount
    return Alert(order.customer, order.amount, usual, order.at) if usual and order.amount > 3 * usual else None
