"""Decides whether a changed program may continue from a checkpoint, by a comparison of states, interface and code."""

from collections.abc import Iterator, Sequence
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError, plural
from wallaroo_runtime.plan.change import Change, Impact, compare
from wallaroo_runtime.plan.shape import state_component
from wallaroo_runtime.topology.model import Step, Topology
from wallaroo_runtime.topology.worker import Component

MAX_REASONS = 3
BACK = "change it back"


def check_states(before: Topology, topology: Topology, path: str) -> None:
    """Check that each state has the language and the class that it had when the checkpoint was written.

    Args:
        before: The topology that wrote the checkpoint.
        topology: The topology to run.
        path: The path of the checkpoint, for the error.

    Raises:
        RunError: R605 with each state that differs.
    """
    if findings := list(_state_findings(before, topology, path)):
        raise RunError(findings)


def safe_changes(before: Topology, topology: Topology, path: str, *, accepts_changed: bool = False) -> list[Change]:
    """Refuse changes that would damage states. Return the other changes, except for those of addresses and code.

    Args:
        before: The topology that wrote the checkpoint.
        topology: The topology to run.
        path: The path of the checkpoint, for the error.
        accepts_changed: Whether fields of states may be lost.

    Raises:
        RunError: R615 with the changes that break states, R605 with the fields of states that would be lost.
    """
    changes = compare(before, topology)
    if breaking := [change for change in changes if change.impact is Impact.BREAKS_STATE and not change.shape]:
        raise RunError.of("R615", path=path, reason=listed(breaking))
    lost = [] if accepts_changed else list(_lost_fields(changes, topology, path))
    if lost:
        raise RunError(lost)
    steps = {step.path for step in topology.states().values()}
    return [
        change
        for change in changes
        if change.is_interface or change.is_start or change.path in steps and change.impact is not Impact.UNKNOWN
    ]


def draining(before: Topology, topology: Topology) -> list[Change]:
    """Return the changes that are only safe after a drain: when all input is processed and all output is delivered."""
    return [change for change in compare(before, topology) if change.impact is Impact.NEEDS_DRAIN]


def is_other_program(before: Topology, topology: Topology) -> bool:
    """Say whether two versions of an application may return different results for the same messages."""
    codes = [{worker.name: worker.code_hash for worker in each.workers} for each in (before, topology)]
    return codes[0] != codes[1] or any(each.is_interface or each.is_start for each in compare(before, topology))


def listed(changes: Sequence[Change]) -> str:
    """Return the first changes as one text, for an error."""
    left = len(changes) - MAX_REASONS
    more = [f"and {left} more {plural(left, 'change')}"] if left > 0 else []
    return "; ".join([change.text for change in changes[:MAX_REASONS]] + more)


def changed_code(before: Topology, topology: Topology) -> list[str]:
    """Return the names of workers whose code hash has changed."""
    known = {worker.name: worker.code_hash for worker in before.workers}
    return [worker.name for worker in topology.workers if known.get(worker.name, worker.code_hash) != worker.code_hash]


def _lost_fields(changes: Sequence[Change], topology: Topology, path: str) -> Iterator[Diagnostic]:
    """Yield a finding (R605) for each state whose fields have changed so that values would be lost."""
    steps = {step.path: (name, step) for name, step in topology.states().items()}
    for change in changes:
        if change.shape:
            name, step = steps[change.path]
            shape = change.shape
            yield _other_class(name, state_component(topology, step), path, shape.was, shape.now, shape.fix)


def _other_class(
    name: str, component: Component | None, path: str, actual: str, expected: str, fix: str = ""
) -> Diagnostic:
    declared_at: dict[str, Any] = {"file": component.file, "line": component.line} if component else {}
    fix = f"{fix}, {BACK}" if fix else BACK
    return Diagnostic.of(
        "R605", what=f'state "{name}"', path=path, actual=actual, expected=expected, fix=fix, **declared_at
    )


def _symbol(topology: Topology, step: Step) -> str:
    """Return the name of the class of a step's state; empty if the front-end has recorded none."""
    component = topology.component(step.worker, f"{step.path}/state")
    return component.symbol if component else ""


def _state_findings(before: Topology, topology: Topology, path: str) -> Iterator[Diagnostic]:
    """Yield a finding (R605) for each state of another class, and for each change of language, e.g. Python to Go."""
    known, languages = before.states(), set[tuple[str, str]]()
    for name, step in topology.states().items():
        if name not in known:
            continue
        former = known[name]
        pair = (before.worker(former.worker).language, topology.worker(step.worker).language)
        if pair[0] != pair[1]:
            if pair not in languages:
                actual, expected = f"a {pair[0]} worker", f"a {pair[1]} one"
                yield Diagnostic.of("R605", what="the state", path=path, actual=actual, expected=expected, fix=BACK)
            languages.add(pair)
        elif (was := _symbol(before, former)) != (symbol := _symbol(topology, step)):
            yield _other_class(name, state_component(topology, step), path, was, symbol)
