"""A class of a state that was changed between two queries: what goes on, and what is refused, as in a run."""

from pathlib import Path
from typing import Any

import pytest

from support.dated_totals import BEGIN, PROGRAM, rows_of, run_stream
from wallaroo_runtime.checkpoint.compatible import safe_changes
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm

# Of the class of a state: what becomes of `self.total = 0`, or a part of the reason why `wallaroo run` refuses it.
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


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_state_is_refused_where_a_run_refuses_it(session: Any, tmp_path: Path, change: str) -> None:
    old, new, reason = changed_programs(tmp_path, change)
    left = old.states(old.apply_all(rows_of(session, [("a", 1, BEGIN)]), gives_states=True))
    assert_states_are_refused(session, new, left, reason=reason)
    for accepts in (False, True):
        try:
            safe_changes(old._topology, new._topology, "checkpoint", accepts_changed=accepts)
        except RunError:
            assert reason and not accepts
        else:
            assert not reason or accepts


def changed_programs(folder: Path, change: str) -> tuple[Steps, Steps, str]:
    """Return the steps before and after a change, and a part of the reason of the refusal."""
    programs = [folder / "totals.py", folder / "other" / "totals.py"]
    programs[1].parent.mkdir()
    body, reason = CHANGES[change]
    for file, text in zip(programs, ("self.total, self.kept = 0, 0", body), strict=True):
        file.write_text(PROGRAM.replace("self.total = 0", text))
    old, new = (load(file) for file in programs)
    return old, new, reason


def assert_states_are_refused(session: Any, new: Steps, *kept: Any, reason: str) -> None:
    """Give states that were kept to a changed program."""
    for states in kept:
        given = {"orders": rows_of(session, [("a", 2, BEGIN)]), "states": states}
        if reason:
            with pytest.raises(RunError, match='R716 the parameter `states`.*state "sum" was written with') as refused:
                new.apply(**given)
            assert reason in str(refused.value)
            assert "or leave `states` out if the query has a checkpoint already" in str(refused.value)
        assert [row["total"] for row in new.apply(**given, accept_changed=bool(reason)).collect()] == [3]


@pytest.mark.parametrize("change", ["a number of another type", "a field more"])
def test_a_stream_with_a_changed_state_is_refused_or_goes_on(session: Any, tmp_path: Path, change: str) -> None:
    old, new, reason = changed_programs(tmp_path, change)

    def run(steps: Steps, **more: bool) -> list[int]:
        found = run_stream(session, tmp_path, lambda source: steps.apply(orders=source, **more))
        return sorted(row["total"] for row in found)

    for amount in (1, 2):
        rows_of(session, [("a", amount, BEGIN)]).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        if amount == 1:
            assert run(old) == [1]
    stored = [steps.read_states(session, tmp_path / "checkpoint") for steps in (old, new)]
    assert_states_are_refused(session, new, *stored, reason=reason)
    if not reason:
        assert run(new) == [1, 3]
        return
    with pytest.raises(Exception, match='R716.*state "sum" was written with') as caught:
        run(new)
    assert reason in str(caught.value)
    fix = "pass accept_changed=True to continue and drop the values of these fields, or use a new checkpoint"
    assert fix in str(caught.value)
    assert run(new, accept_changed=True) == [1, 3]
    rows_of(session, [("a", 3, BEGIN)]).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    assert run(new) == [1, 3, 6]  # the checkpoint is that of the new program
