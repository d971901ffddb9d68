"""Decides whether a changed program may read its stored states, for applications in a user's own query (`dataframe`).

The query stores facts about each state (class, key, window and others) next to its states, in JSON. If these facts
differ from those of the program, a task runs `python -m wallaroo_runtime.plan.kept_state`. The input is JSON with
`before`, `now` and `accepts_changed`. The output has `reason` and `fix`, or is `{}` if the program may continue. The
rules are those of `wallaroo run`.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from wallaroo_runtime.plan.shape import compare_components
from wallaroo_runtime.topology.worker import Component

BACK = "change it back"
GOES_ON = "pass accept_changed=True to continue and drop the values of these fields"


class KeptState(NamedTuple):
    """Facts about a stored state, as the program declared it when the state was written.

    Attributes:
        type: Class, language and codec of the state, for people.
        place: Where the state is in a query; empty if the state is outside of a query.
        window: The window in words, see `window_shape`.
        time: Kind of time that passes for the state's window in a query; empty if there is none.
        symbol: Name of the state's class, which is written in `language` and has the `shape`.
    """

    type: str
    key: str
    window: str
    language: str
    symbol: str
    shape: Mapping[str, str] | None
    place: str = ""
    time: str = ""


def refusal(before: Mapping[str, Any], now: Mapping[str, Any], *, accepts_changed: bool) -> dict[str, str]:
    """Return `reason` and `fix` if a program must not read stored states; empty if the program may read them.

    Args:
        before: For each state, by name, the fields of a `KeptState` that were stored with it.
        now: The same for the states of the program.
        accepts_changed: Whether fields of states may be lost.
    """
    for name, fields in before.items():
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
