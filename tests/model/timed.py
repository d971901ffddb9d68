"""The steps with times of a drawn application, in the reference: plainly, each key with its timers."""

from dataclasses import dataclass, field
from typing import Any

from model import compute
from model.compute import Item, Step, Timer


@dataclass
class Key:
    """What there is of a key."""

    state: dict[str, Any]
    time: int
    timers: dict[str, int] = field(default_factory=dict)


def arrive(step: Step, known: Key | None, item: Item, now: int) -> tuple[Key, Item]:
    """Run a message; returns what there is of the key then, and what it gives.

    Raises:
        ValueError: The step was drawn to fail on this item.
    """
    after = Key(compute.new_track(), now) if known is None else Key(dict(known.state), now, dict(known.timers))
    timers, made = compute.track(step, item, after.state)
    _set(after, timers, now)
    return after, made


def wake(step: Step, known: Key, now: int) -> tuple[Key | None, list[Item], int]:
    """Do what is due at a time; returns what is left of the key, what timers give, and how many fail.

    What timers set meanwhile is done as well, in its place.
    """
    last, given, failed = (-1, 0, ""), list[Item](), 0
    while due := _due(step, known, now, last):
        last = time, is_end, name = min(due)
        if is_end:
            return None, given, failed
        known = Key(known.state, known.time, {other: at for other, at in known.timers.items() if other != name})
        after = Key(dict(known.state), known.time, dict(known.timers))
        try:
            timers, item, is_deleted = compute.fire(step, name, after.state)
        except ValueError:
            failed += 1
            continue
        _set(after, timers, time)
        known = after
        given += [] if item is None else [item]
        if is_deleted:
            return None, given, failed
    return known, given, failed


def _due(step: Step, known: Key, now: int, last: tuple[int, int, str]) -> list[tuple[int, int, str]]:
    """Return time, whether it is the end of the state, and name of all that is due at a time, after what was last."""
    due = [(time, 0, name) for name, time in known.timers.items()]
    due += [(known.time + step["ttl"], 1, "")] if step["ttl"] else []
    return [each for each in due if last < each and each[0] <= now]


def _set(known: Key, timers: list[Timer], now: int) -> None:
    for name, ms in timers:
        known.timers.pop(name, None)
        if ms is not None:
            known.timers[name] = now + ms
