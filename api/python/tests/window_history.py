"""Any windows, and any messages and ticks for them: what property tests draw."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as some
from window_case import PORT, Event, tick

from vector.make_windows import Reference
from wallaroo.message.frame import encode_frame

Encode = Callable[[Sequence[int]], tuple[int, list[bytes]]]  # from values to an encoding and their bytes

YEAR_MS = 31_536_000_000
FAILS = (-1, -2)  # of the vectors' aggregation
# From a message to the next: none, little, around the sizes of windows, and long silences; the clock is set back, too.
STEPS = some.one_of(
    some.sampled_from((0, 0, 0, 1, 1, 2, 3, 5, 30)), some.integers(-60, 60), some.sampled_from((200, -300, YEAR_MS))
)
BEGIN = some.sampled_from((0, -17, 1000, -62_135_596_800_000, 95_617_584_000_000, 253_402_300_799_990))
OWN = some.one_of(
    some.just(0), some.integers(-40, 3), some.sampled_from((-200, 90_000_000_000_000, -(1 << 60), 1 << 62))
)


@some.composite
def windows(draw: some.DrawFn) -> dict[str, Any]:
    if draw(some.integers(0, 4)) == 0:
        return {"kind": "count", "count": draw(some.integers(1, 5)), "flush_ms": draw(some.integers(1, 60))}
    size = draw(some.integers(1, 24))
    if draw(some.booleans()):
        spans = {"kind": "session", "gap_ms": size}
    else:
        spans = {"kind": "range", "range_ms": size, "slide_ms": draw(some.integers(1, size))}
    return spans | {
        "delay_ms": draw(some.sampled_from((0, 0, 1, 5, 30))),
        "late": draw(some.sampled_from(("drop", "fire_per_message", "place_in_oldest_window"))),
        "time": draw(some.sampled_from(("ingest", "event"))),
    }


@some.composite
def histories(draw: some.DrawFn) -> list[Event]:
    """Draw messages of a few keys, and ticks."""
    found: list[Event] = []
    clock = draw(BEGIN)
    for sequence in range(draw(some.integers(0, 60))):
        clock += draw(STEPS)
        for _ in range(draw(some.sampled_from((0, 0, 0, 1, 2)))):
            found.append({"sequence": sequence, "tick": clock})
            clock += draw(some.sampled_from((0, 1, 15)))
        value = draw(some.sampled_from((sequence, sequence, sequence, sequence, sequence, *FAILS)))
        key, time = draw(some.sampled_from("aaab\u00e9")), clock + draw(OWN)
        found.append(
            {"sequence": sequence, "key": key, "time": max(-(1 << 63), min((1 << 63) - 1, time)), "value": value}
        )
    return found


def reference(window: dict[str, Any], events: list[Event], *, has_watermarks: bool = False) -> Any:
    found = Reference(window, has_watermarks=has_watermarks)
    found.run(events)
    return found


def cut(draw: some.DrawFn, events: list[Event], encode: Encode, port: int = PORT) -> list[bytes]:
    """Draw frames of one or more messages, or of a tick, in some order."""
    parts: list[list[Event]] = []
    for event in events:
        if "tick" in event or not parts or "tick" in parts[-1][0] or draw(some.booleans()):
            parts.append([])
        parts[-1].append(event)
    return [
        tick(part[0]["sequence"], part[0]["tick"]) if "tick" in part[0] else framed(part, encode, port)
        for part in draw(some.permutations(parts))
    ]


def framed(events: list[Event], encode: Encode, port: int) -> bytes:
    names = list(dict.fromkeys(event["key"] for event in events))
    encoding, values = encode([event["value"] for event in events])
    earliest, first = min(event["time"] for event in events), events[0]["sequence"]
    return encode_frame(
        values, port=port, sequence=first, encoding=encoding, timestamp_ms=earliest,
        keys=[name.encode() for name in names], key_indexes=[names.index(event["key"]) for event in events],
        sequences=[event["sequence"] - first for event in events],
        timestamps=[event["time"] - earliest for event in events],
    )  # fmt: skip
