"""Draws steps with timers and a ttl, rows for them, and what a plain reference makes of these."""

import json
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from support.row_stream import BEGIN_MS, EPOCH, SPAN, ms_of, watermarks
from support.row_timers import CLOSE_MS
from vector.make_timers import Reference

DELAY_MS, LEVELS = 40, 2
YEAR_MS = 31_536_000_000
CLOSE = [{"set": "close", "after": CLOSE_MS}]
Row = tuple[str, int, str, Any, int]  # as `SCHEMA`
Step = dict[str, Any]
Event = dict[str, Any]


def steps_of(seed: int, count: int = 6, scale: int = 1) -> list[Step]:
    """Draw steps: what their timers do, and a ttl; the first one beats, which never ends by itself."""
    chance, found = (
        random.Random(seed),
        [{"timers": {"x": {"gives": True, "ops": [{"set": "x", "after": 70 * scale}]}}}],
    )
    for _ in range(count - 1):
        names, timers = "xy\u00fc"[: chance.choice((1, 2, 3))], {}
        for name in names:
            timers[name] = {
                word: chance.random() < odds for word, odds in (("deletes", 0.2), ("fails", 0.1), ("gives", 0.8))
            }
            timers[name]["appends"] = chance.choice(([], [7]))
            timers[name]["ops"] = ops_of(chance, names, (20, 80, 300, YEAR_MS), scale) if chance.random() < 0.5 else []
        found.append({"timers": timers})
    return [each | {"ttl_ms": scale * chance.choice((0, 0, 90, 400))} for each in found]


def ops_of(chance: random.Random, names: str, after: Sequence[int], scale: int, now: int = 0) -> list[Event]:
    name = chance.choice(names)
    if now and chance.random() < 0.2:
        return [{"set": name, "at": now + scale * chance.choice((-30, 0, 60))}]
    return [{"delete": name}] if chance.random() < 0.15 else [{"set": name, "after": scale * chance.choice(after)}]


def drawn(seed: int, count: int = 100, scale: int = 1, *, is_event: bool = True) -> list[Row]:
    """Draw rows whose times go forth, and back a little, with long silences; all steps have the timer x.

    With times of arrival no timer is set to a time of the data, which is long past for the clock.
    """
    chance, now, found = random.Random(seed), BEGIN_MS, list[Row]()
    for number in range(count):
        now += chance.choice((0, 1, 1, 3, 10, 10, 100, 500))
        at = now - chance.choice((0, 0, 0, 20, 60, 200))
        ops = ops_of(chance, "x", (0, 1, 5, 20, 20, 80), scale, at * is_event) if chance.random() < 0.7 else []
        value = -1 if chance.random() < 0.08 else number
        found.append((chance.choice("aab\u00e9"), value, json.dumps(ops), EPOCH + timedelta(milliseconds=at), number))
    return found


def message(row: Row, sequence: int, at: int) -> Event:
    return {"sequence": sequence, "key": row[0], "time": at, "value": row[1], "ops": json.loads(row[2])}


def messages(rows: Sequence[Row]) -> list[Event]:
    """Return rows as events of the reference, in their order."""
    return [message(row, SPAN * number, ms_of(row[3])) for number, row in enumerate(rows)]


def references(step: Step, events: list[Event], time: str = "watermarks") -> tuple[Any, Any]:
    """Run the reference of a step, then that of the step that collects its output."""
    ticks = [
        [each for each in events if "tick" in each and each.get("level", level) == level] for level in range(LEVELS)
    ]
    first, second = (
        Reference([step["timers"]], time, step["ttl_ms"]),
        Reference([{"close": {"gives": 1, "deletes": 1}}], time),
    )
    first.run([*(each for each in events if "tick" not in each), *ticks[0]])
    second.run([*({**each, "step": 0, "value": each["now"], "ops": CLOSE} for each in first.outputs), *ticks[1]])
    return first, second


def expected(step: Step, events: list[Event], time: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Return what a step gives, what is collected of it, and the keys and codes of the dead letters."""
    first, second = references(step, events, time)
    closed = [each for each in second.outputs if each["timer"]]
    letters = sorted((each["key"], each["code"]) for each in first.dead_letters)
    return sorted(map(row_of, first.outputs)), sorted(map(row_of, closed)), letters


def row_of(given: Any) -> tuple[Any, ...]:
    return (given["key"], given["timer"], given["now"], *given["values"])


def check(described: Sequence[Step], rows: Sequence[Any], events: list[Event], time: str = "watermarks") -> None:
    """Compare rows of `apply_all` with those of the reference."""
    for number, step in enumerate(described):
        given = [
            sorted(row_of(json.loads(row["value"])) for row in rows if row["output"] == f"{sink}{number}")
            for sink in "tc"
        ]
        letters = [row["dead_letter"] for row in rows if row["dead_letter"] is not None]
        failed = sorted(
            (bytes(each["key"]).decode(), each["code"]) for each in letters if each["step"] == f"timed {number}"
        )
        assert (*given, failed) == expected(step, events, time), step
    assert all("timed" in row["dead_letter"]["step"] for row in rows if row["dead_letter"] is not None)


def with_watermarks(batches: Sequence[Sequence[Row]]) -> list[Event]:
    """Return rows as events of the reference, with a tick after each micro-batch."""
    times = [[ms_of(row[3]) for row in rows] for rows in batches]
    return [*messages([row for rows in batches for row in rows]), *watermarks(times, LEVELS, DELAY_MS)]
