"""Where the message of a dead letter enters the plan again.

A message of a state computation enters at its step, like one that comes over a shuffle. All others enter a stage of
their own: a RECEIVE that only the failing part reads, and what follows that part up to the exits.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan.stage import ENTRIES, REPLAY_PORT, STATE_ENTRIES, Node, NodeKind, Stage
from wallaroo_runtime.topology.model import Part, Source, Step, Topology

FIRST_PRIVATE, LAST_PRIVATE = 16, 255  # the encodings that are a worker's own
ENTRY = "/replay"  # ends the path of the RECEIVE, which is no part of the topology
_KEYING = frozenset({NodeKind.KEY_BY, NodeKind.COLLECT})
# Failures after the part's own code: the letter has what that made of the message.
_LATE = frozenset({(NodeKind.SINK, "C504"), (NodeKind.KEY, "C525")})
_EMPTY = frozenset({"", "b''", "''", '""'})  # previews of inputs that really have no bytes


@dataclass(frozen=True, slots=True)
class Route:
    """Where a message enters.

    Attributes:
        stage: That runs it.
        node: Its entry: a state step, or the RECEIVE.
    """

    stage: Stage
    node: Node

    @property
    def has_state(self) -> bool:
        """Whether it enters at a state step."""
        return self.node.kind in STATE_ENTRIES


def route_of(stages: Iterable[Stage], letter: pb.DeadLetter) -> Route | str:
    """Return where the message of a dead letter enters, or why it cannot.

    Args:
        stages: Of the plan.
        letter: Of a step or sink.
    """
    if not FIRST_PRIVATE <= letter.encoding <= LAST_PRIVATE:
        return "its letter has no message: it could not be serialized or read, or it is that of a visit or tick"
    if not letter.input and letter.preview not in _EMPTY:
        return "its input was too long to be kept"
    if letter.has_key:
        return _at_state(stages, letter.path)
    found = [
        (stage, number)
        for stage in stages
        for number, node in enumerate(stage.nodes)
        if node.path == letter.path and node.kind not in ENTRIES and node.kind is not NodeKind.SEND
    ]
    if any((stage.nodes[number].kind, letter.code) in _LATE for stage, number in found):
        return "its part had made bytes of the message already, and its letter has these"
    if len({stage.worker for stage, _ in found}) > 1:
        return "several workers have its step, and its letter does not say which one failed"
    routes = [_following(*each) for each in found] or ["no step or sink has its path"]
    return next((route for route in routes if isinstance(route, Route)), routes[0])


def _at_state(stages: Iterable[Stage], path: str) -> Route | str:
    for stage in stages:
        for node in stage.entries:
            if node.path != path or node.kind not in STATE_ENTRIES:
                continue
            if node.kind is NodeKind.WINDOW:
                return "it failed at a window, and its letter does not have the time that decides on windows"
            if node.codec:
                return f"its step gets messages of another worker in codec {node.codec}; the letter has another form"
            return Route(stage, node)
    return "no state step has its path"


def _following(stage: Stage, number: int) -> Route | str:
    """Return a stage of a node and what follows it."""
    first = stage.nodes[number]
    entry = Node(first.path + ENTRY, NodeKind.RECEIVE, port=REPLAY_PORT)
    nodes, keyed = [replace(first, inputs=(entry.path,))], {first.path} if first.kind in _KEYING else set[str]()
    # A KEY exit has the path of its state step, which reads nothing here.
    reached = set[str]() if first.kind in (NodeKind.KEY, NodeKind.SINK) else {first.path}
    for node in stage.nodes[number + 1 :]:
        inputs = tuple(path for path in node.inputs if path in reached)
        if not inputs:
            continue
        if node.kind is NodeKind.SEND:
            return "what follows its step runs in another worker"
        nodes.append(replace(node, inputs=inputs))
        if node.kind not in (NodeKind.KEY, NodeKind.SINK):
            reached.add(node.path)
            if node.kind in _KEYING or keyed.issuperset(inputs):
                keyed.add(node.path)
    if any(node.kind is NodeKind.KEY and node.keys and not keyed.issuperset(node.inputs) for node in nodes):
        return "a state after its step has the key that the message carries, which its letter does not have"
    stamped = any(node.timestamps for node in nodes)
    entry = replace(entry, timestamps=stamped)
    return Route(replace(stage, id=f"{stage.id}-{first.path}", nodes=(entry, *nodes)), entry)


def part_of(topology: Topology, letter: pb.DeadLetter) -> Part | None:
    """Return the step or sink that a dead letter is of, also when the program has moved it; None: it is gone.

    Its path and its name are those of the letter, or only one part has its name.
    """
    parts = [part for part in topology.parts() if not isinstance(part, Source)]
    named = [part for part in parts if letter.step in (part.name, part.path)]
    exact = [part for part in named if part.path == letter.path]
    if exact:
        return exact[0]
    return named[0] if len(named) == 1 else None


def candidates(topology: Topology, letter: pb.DeadLetter) -> list[str]:
    """Return the names that the part of a letter may have now, that of its place first.

    A message with a key is that of a state step.
    """
    parts = [
        part
        for part in topology.parts()
        if not isinstance(part, Source) and (not letter.has_key or (isinstance(part, Step) and part.state is not None))
    ]
    parts.sort(key=lambda part: part.path != letter.path)
    return list(dict.fromkeys(part.name for part in parts))


def event_window_after(topology: Topology, part: Part) -> str:
    """Return the name of a window of event time to which results of a part go; empty: there is none."""
    reached = {part.path}
    for step in topology.steps():
        if reached.isdisjoint(step.inputs):
            continue
        if step.window is not None and step.window.time == "event":
            return step.name
        reached.add(step.path)
    return ""
