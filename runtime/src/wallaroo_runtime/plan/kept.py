"""What the states of a query depend on that is not ours: it keeps that next to them, in JSON.

`python -m wallaroo_runtime.plan.kept` answers a task that finds something else than its program has. The request comes
as JSON to the standard input: `before`, `now` and `accepts_changed`. The answer goes to the standard output: `reason`
and `fix`, or nothing where the program may go on. The rule is that of `wallaroo run`.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from wallaroo_runtime.plan.shape import MadeState, compare_shapes

BACK = "change it back"
GOES_ON = "pass accept_changed=True to go on without what they held"


class KeptState(NamedTuple):
    """What a state was written by.

    Attributes:
        type: Its class, language and codec, for people.
        place: In the plan.
        key: Kind of its keys.
        window: As `window_shape` says it.
        time: That passes for its window; empty: it has none.
        made: The shape of its class.
    """

    type: str
    place: str
    key: str
    window: str
    time: str
    made: MadeState

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return {**self._asdict(), "made": self.made._asdict()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "KeptState":
        """Read the form that `to_json` wrote."""
        return cls(**{**value, "made": MadeState(**value["made"])})


def refusal(before: Mapping[str, Any], now: Mapping[str, Any], *, accepts_changed: bool) -> dict[str, str]:
    """Return why states must not be read by another program, and what to do; empty: they may.

    Args:
        before: What they were written by, by name; each as `KeptState.to_json` wrote it.
        now: What the program has.
        accepts_changed: Whether fields of states may be lost.
    """
    for name, fields in before.items():
        if isinstance(fields, str):
            continue  # an earlier version's, which had other names
        was, state = KeptState.from_json(fields), f'state "{name}"'
        if name not in now:
            return {"reason": f"{state} was written as {was.type}; the program now has none", "fix": BACK}
        new = KeptState.from_json(now[name])
        for what, old, is_now in zip(KeptState._fields[:-1], was, new, strict=False):
            if old != is_now:
                part = f"{state} was" if what == "type" else f"the {what} of {state} was"
                return {"reason": f"{part} written as {old}; the program now has {is_now}", "fix": BACK}
        change = compare_shapes(was.made, new.made)
        if change is not None and change.is_known and not accepts_changed:
            reason = f"{state} was written with {change.was}; the program now has {change.now}; {change.why}"
            return {"reason": reason, "fix": f"{change.fix or BACK}, or {GOES_ON}"}
    return {}


if __name__ == "__main__":
    json.dump(refusal(**json.load(sys.stdin)), sys.stdout)
