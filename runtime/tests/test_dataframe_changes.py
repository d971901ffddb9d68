"""Classes of states that were changed between two queries: what goes on, and what is refused, as in a run."""

import json
import random
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from support.dated_totals import BEGIN, rows_of, run_stream
from wallaroo_runtime.checkpoint.compatible import safe_changes
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm

# Of the class of a state: what becomes of `FIELDS`, or a part of the reason why `wallaroo run` refuses it.
CHANGES = {
    "a field is gone": ("self.total = 0", ""),
    "a number of another type": ("self.total: float = 0.0", ""),
    "a field with a value of the class": ("self.total, self.kept = 0, 0\n\n    more = None", ""),
    "a field more": (
        "self.total, self.kept, self.more = 0, 0, []",
        'states that were kept have none; give field "more"',
    ),
    "a field renamed": ("self.total, self.other = 0, 0", 'what was kept in field "kept" would be lost'),
    "another type": ("self.total, self.kept = 0, {}", 'what was kept in field "kept" cannot be read'),
}
SAFE = [change for change, (_, reason) in CHANGES.items() if not reason]
FIELDS = "self.total, self.kept = 0, 0"
PROGRAM = """
import wallaroo

@wallaroo.key_extractor
def by_user(order):
    return order["user"]

def application_setup(args):
    source = wallaroo.DataFrameSourceConfig({"user": str, "amount": int})
    orders = wallaroo.source("orders", source).key_by(by_user)
    sinks = (orders.to(add).to_sink(wallaroo.DataFrameSinkConfig({"total": int}, name=add.name())) for add in STEPS)
    return wallaroo.build_application("Totals", *sinks)

STEPS = []
"""
STATE = """
class Sum0:
    def __init__(self):
        FIELDS

@wallaroo.state_computation("sum 0", Sum0)
def add0(order, state):
    state.total += order["amount"]
    return {"total": state.total}

STEPS.append(add0)
"""


def program(folder: Path, *changed: str, of: Collection[str] = tuple(CHANGES)) -> Steps:
    """Return the steps of a program with a state for each change of `of`, of which some are made."""
    states = (
        STATE.replace("0", str(number)).replace("FIELDS", CHANGES[change][0] if change in changed else FIELDS)
        for number, change in enumerate(of)
    )
    folder.mkdir()
    (folder / "totals.py").write_text(PROGRAM + "".join(states))
    return load(folder / "totals.py")


def totals(rows: Iterable[Any], states: int = len(CHANGES)) -> list[int]:
    """Return the totals of a state, which are those of all states."""
    found = sorted(json.loads(row["value"])["total"] for row in rows if row["value"] is not None)
    assert found == sorted(found[::states] * states)
    return found[::states]


def test_a_changed_state_is_refused_where_a_run_refuses_it(session: Any, tmp_path: Path) -> None:
    old, safe = program(tmp_path / "old"), program(tmp_path / "safe", *SAFE)
    every, rows = program(tmp_path / "all", *CHANGES), rows_of(session, [("a", 2, BEGIN)])
    left = old.states(old.apply_all(rows_of(session, [("a", 1, BEGIN)]), gives_states=True))
    left = session.createDataFrame(left.collect(), left.schema)
    for change in CHANGES.keys() - SAFE:
        new = program(tmp_path / change, change)
        assert_states_are_refused(new, rows, left, CHANGES[change][1])
        with pytest.raises(RunError):
            safe_changes(old._topology, new._topology, "checkpoint", accepts_changed=False)
    assert totals(safe.apply_all(rows, states=left).collect()) == [3]
    assert totals(every.apply_all(rows, states=left, accept_changed=True).collect()) == [3]
    safe_changes(old._topology, safe._topology, "checkpoint", accepts_changed=False)
    safe_changes(old._topology, every._topology, "checkpoint", accepts_changed=True)


def assert_states_are_refused(new: Steps, rows: Any, states: Any, reason: str) -> None:
    with pytest.raises(RunError, match=r'R716 the parameter `states`.*state "sum \d" was written with') as refused:
        new.apply_all(rows, states=states)
    assert reason in str(refused.value)
    assert "or leave `states` out if the query has a checkpoint already" in str(refused.value)


def test_a_stream_with_a_changed_state_is_refused_or_goes_on(session: Any, tmp_path: Path) -> None:
    change = "a field more"
    both = (change, safe := random.choice(SAFE))  # the test of batches has all changes
    old, more = program(tmp_path / "old", of=both), program(tmp_path / "more", change, of=both)
    less = program(tmp_path / "less", safe, of=both)

    def run(steps: Steps, *amounts: int, **accepts: bool) -> list[int]:
        for amount in amounts:
            rows_of(session, [("a", amount, BEGIN)]).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        rows = run_stream(session, tmp_path, lambda source: steps.apply_all(orders=source, **accepts))
        return totals(rows, len(both))

    assert run(old, 1) == [1]
    rows, reason = rows_of(session, [("a", 2, BEGIN)]), CHANGES[change][1]
    for steps in (old, more):
        stored = steps.read_states(session, tmp_path / "checkpoint")
        assert_states_are_refused(more, rows, stored, reason)
    assert totals(more.apply_all(rows, states=stored, accept_changed=True).collect(), len(both)) == [3]
    with pytest.raises(Exception, match=r'R716.*state "sum \d" was written with') as caught:
        run(more, 2)
    assert reason in str(caught.value)
    fix = "pass accept_changed=True to continue and drop the values of these fields, or use a new checkpoint"
    assert fix in str(caught.value)
    assert run(more, accept_changed=True) == [1, 3]
    assert run(more, 3) == [1, 3, 6]  # the checkpoint is that of the new program
    assert run(less, 4) == [1, 3, 6, 10]  # these changes are safe
