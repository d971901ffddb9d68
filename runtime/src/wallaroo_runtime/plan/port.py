"""Assigns ports. A port is the number by which the header of a frame names a source, state step or sink.

A checkpoint keeps the port of a part as long as the part exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from wallaroo_runtime.plan.match import match_parts
from wallaroo_runtime.topology.model import Part, Topology


@dataclass(frozen=True, slots=True)
class Ports:
    """The numbers by which frames name the sources, state steps and sinks of one application.

    Attributes:
        parts: Path of each source, state step and sink to its port.
        states: Name of each state to the port of its log frames.
        next: The smallest number that was never assigned.
    """

    parts: Mapping[str, int]
    states: Mapping[str, int]
    next: int


def first_ports(topology: Topology) -> Ports:
    """Return the ports of a new application, in document order. A state has the port of its first step."""
    return kept_ports(None, Ports({}, {}, 0), topology)


def kept_ports(old: Topology | None, before: Ports, new: Topology) -> Ports:
    """Return the ports of a new version of an application. A part that exists in both versions keeps its number.

    Journal, outbox and state logs hold frames with the numbers. A number is never assigned to a second part.

    Args:
        old: The version that the checkpoint was last run with; None if there is none.
        before: The ports of that version.
        new: The version that continues.
    """
    matched = {} if old is None else match_parts(old, new)
    parts: dict[str, int] = {}
    number = before.next
    ported: list[Part] = [*new.sources(), *new.state_steps(), *new.sinks()]
    for part in ported:
        port = before.parts.get(matched.get(part.path, ""))
        if port is None:
            port, number = number, number + 1
        parts[part.path] = port
    states = dict(before.states)
    for step in new.state_steps():
        if step.state is not None:
            states.setdefault(step.state.name, parts[step.path])
    return Ports(parts, states, number)
