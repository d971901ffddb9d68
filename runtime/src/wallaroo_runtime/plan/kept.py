"""What the states of a query that is not ours depend on: it keeps that next to them, in JSON.

`python -m wallaroo_runtime.plan.kept` answers a task that finds something else than its program has. It reads `before`,
`now` and `accepts_changed` as JSON, and writes `reason` and `fix`, or nothing where the program may go on. The rule is
that of `wallaroo run`.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from wallaroo_runtime.plan.shape import compare_components
from wallaroo_runtime.topology.worker import Component

BACK = "change it back"
GOES_ON = "pass accept_changed=True to go on without what they held"


class KeptState(NamedTuple):
    """What a state was written by.

    Attributes:
        type: Its class, language and codec, for people.
        window: As `window_shape` says it.
        time: That passes for its window; empty: it has none.
        symbol: Of its class, which is written in `language` and has the `shape`.
    """

    type: str
    place: str
    key: str
    window: str
    time: str
    language: str
    symbol: str
    shape: Mapping[str, str] | None


def refusal(before: Mapping[str, Any], now: Mapping[str, Any], *, accepts_changed: bool) -> dict[str, str]:
    """Return why a program must not read states, and what to do; empty: it may.

    Args:
        before: What they were written by, by name; each has the fields of a `KeptState`.
        now: What the program has.
        accepts_changed: Whether fields of states may be lost.
    """
    for name, fields in before.items():
        if isinstance(fields, str):
            continue  # an earlier version's, which had other names
        was, state = KeptState(**fields), f'state "{name}"'
        if name not in now:
            return {"reason": f"{state} was written as {was.type}; the program now has none", "fix": BACK}
        new = KeptState(**now[name])
        for what in ("type", "place", "key", "window", "time"):
            values = getattr(was, what), getattr(new, what)
            if values[0] != values[1]:
                part = state if what == "type" else f"the {what} of {state}"
                return {"reason": f"{part} was written as {values[0]}; the program now has {values[1]}", "fix": BACK}
        components = (Component("", each.symbol, shape=each.shape) for each in (was, new))
        change = compare_components(*components, language=new.language, is_same=True)
        if change is not None and not accepts_changed:
            reason = f"{state} was written with {change.was}; the program now has {change.now}; {change.why}"
            return {"reason": reason, "fix": f"{change.fix or BACK}, or {GOES_ON}"}
    return {}


if __name__ == "__main__":
    json.dump(refusal(**json.load(sys.stdin)), sys.stdout)
