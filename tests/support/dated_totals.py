"""Orders and their totals: a program for steps between DataFrames, and what plain Python makes of the orders."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

SCHEMA = "user STRING, amount BIGINT, at TIMESTAMP"
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
# Two states one after the other: the sum of each user, then how often each last digit came up, of all users.
PROGRAM = """
from dataclasses import dataclass, field
from datetime import datetime

import wallaroo


@dataclass
class Order:
    user: str
    amount: int
    at: datetime


@dataclass
class Total:
    user: str
    total: int
    at: datetime


class Sum:
    def __init__(self):
        self.total = 0


class Count:
    def __init__(self):
        self.times = 0


@wallaroo.key_extractor
def by_user(order):
    return order.user


@wallaroo.key_extractor
def by_digit(total):
    return str(total.total % 10)


@wallaroo.state_computation("sum", Sum)
def add(order, state):
    if order.amount < 0:
        raise ValueError("negative")
    state.total += order.amount
    return Total(order.user, state.total, order.at)


@wallaroo.state_computation("digits", Count)
def count(total, state):
    state.times += 1
    return {"digit": str(total.total % 10), "times": state.times}


def application_setup(args):
    totals = wallaroo.source("orders", wallaroo.DataFrameSourceConfig(Order)).key_by(by_user).to(add)
    if "all" not in args:
        return wallaroo.build_application("Totals", totals.to_sink(wallaroo.DataFrameSinkConfig(Total)))
    digits = totals.key_by(by_digit).to(count).to_sink(wallaroo.DataFrameSinkConfig({"digit": str, "times": int}))
    return wallaroo.build_application("Digits", digits)
"""
Order = tuple[str, int, datetime]


def drawn(seed: int, count: int = 300) -> list[Order]:
    """Draw orders whose times differ, in no order."""
    chance = random.Random(seed)
    times = chance.sample(range(10 * count), count)
    return [(f"u{chance.randrange(7)}", chance.randrange(100), BEGIN + timedelta(microseconds=at)) for at in times]


def totals(orders: list[Order]) -> list[tuple[str, int]]:
    """Return what the program gives for orders in the order of their times."""
    sums: dict[str, int] = {}
    found = []
    for user, amount, _ in sorted(orders, key=lambda order: order[2]):
        sums[user] = sums.get(user, 0) + amount
        found.append((user, sums[user]))
    return found


def rows_of(session: Any, orders: list[Order]) -> Any:
    return session.createDataFrame(orders, SCHEMA)


def run_stream(session: Any, folder: Path, frame: Callable[[Any], Any]) -> list[Any]:
    """Process all files of a folder that are new to a query, a micro-batch for each; return all that it ever gave."""
    source = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    writer = frame(source).writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    found: list[Any] = session.read.parquet(str(folder / "out")).collect()
    return found
