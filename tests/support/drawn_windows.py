"""Draws windows, some after others, rows for them, and what a plain reference makes of these."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from support.row_stream import BEGIN_MS, EPOCH, SPAN, ends, ms_of
from vector.make_windows import Reference

LATE = ("drop", "fire_per_message", "place_in_oldest_window")
Row = tuple[str, int, datetime, int]  # as `SCHEMA`
Chain = list[dict[str, Any]]


def window(chance: random.Random, time: str) -> dict[str, Any]:
    if chance.random() < 0.2:
        return {"kind": "count", "count": chance.randint(1, 5), "flush_ms": 5000}
    size = chance.randint(1, 60)
    slide, delay, late = chance.randint(1, size), chance.choice((0, 0, 7, 90)), chance.choice(LATE)
    if chance.random() < 0.4:
        return {"kind": "session", "gap_ms": size, "delay_ms": delay, "late": late, "time": time}
    return {"kind": "range", "range_ms": size, "slide_ms": slide, "delay_ms": delay, "late": late, "time": time}


def chains(seed: int, time: str = "event") -> list[Chain]:
    """Draw windows, and some after others."""
    chance = random.Random(seed)
    every = {"kind": "range", "range_ms": 20, "slide_ms": 6, "delay_ms": 0, "late": "drop", "time": time}
    return [
        [every],
        [sessions(time)],
        *([window(chance, time) for _ in range(chance.choice((1, 1, 2)))] for _ in range(6)),
    ]


def sessions(time: str) -> dict[str, Any]:
    return {"kind": "session", "gap_ms": 30, "delay_ms": 7, "late": "drop", "time": time}


def drawn(seed: int, count: int = 160) -> list[Row]:
    """Draw rows whose times go forth, and back a little, with silences."""
    chance, now, found = random.Random(seed), BEGIN_MS, []
    for number in range(count):
        now += chance.choice((0, 1, 1, 3, 10, 10, 300))
        at = EPOCH + timedelta(milliseconds=now - chance.choice((0, 0, 0, 20, 60, 200)))
        found.append((chance.choice("aab\u00e9"), number, at, number))
    return found


def messages(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows as events of the reference, in their order."""
    return [
        {"sequence": SPAN * number, "key": key, "time": ms_of(at), "value": (value,)}
        for number, (key, value, at, _) in enumerate(rows)
    ]


def in_turn(events: list[dict[str, Any]], ticks: list[dict[str, Any]], *, by_time: bool) -> list[dict[str, Any]]:
    """Return messages and ticks in the order in which a level takes them."""
    begins = sorted(tick["sequence"] for tick in ticks)
    turns = {id(each): bisect_right(begins, each["sequence"]) for each in events}
    messages = sorted(events, key=lambda each: (turns[id(each)], each["time"] * by_time, each["sequence"]))
    last = [(number, tick) for number, tick in enumerate(sorted(ticks, key=lambda tick: tick["sequence"]))]
    return [each for _, each in sorted([*((turns[id(each)], each) for each in messages), *last], key=itemgetter(0))]


def expected(
    chain: Chain, events: list[dict[str, Any]], *, is_of_data: bool = True, in_time: bool = False
) -> list[tuple[Any, ...]]:
    """Return what windows one after the other give; each takes the ticks of its level, or those that have none.

    Windows of time get results between two ticks in the order of their times; with `in_time` count windows do so, too.
    """
    ticks = [event for event in events if "tick" in event]
    events = [event for event in events if "tick" not in event]
    for level, described in enumerate(chain):
        own = [event for event in ticks if event.get("level", level) == level]
        by_time = level > 0 and is_of_data and (in_time or described["kind"] != "count")
        before = in_turn(events, own, by_time=by_time)
        events = [{**each, "sequence": at} for at, each in enumerate(before)]
        if described.get("rekeyed"):
            events = [{**each, "key": ""} for each in events]
        values: list[tuple[int, ...]] = [event.get("value", ()) for event in events]
        reference = Reference(described, has_watermarks=is_of_data)
        reference.run([each if "tick" in each else {**each, "value": at} for at, each in enumerate(events)])
        assert not [each for each in reference.given if each.code]
        found = [(each, sum((values[at] for at in each.values), ())) for each in reference.given]
        events = [
            {"sequence": before[each.sequence]["sequence"], "key": each.key, "time": each.time, "value": all_}
            for each, all_ in found
        ]
    return sorted((each.key, *each.bounds, *all_) for each, all_ in found)


def shown(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((row["key"], row["begin"], row["end"], *row["values"]) for row in rows.collect())


def ticks_of_end(windows: list[Chain], rows: Sequence[Row]) -> list[dict[str, Any]]:
    return ends(max(ms_of(at) for _, _, at, _ in rows), max(map(len, windows)))
