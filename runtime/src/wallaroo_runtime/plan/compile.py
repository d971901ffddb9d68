"""Compiles a topology to a plan, by passes over one `Draft` in a fixed order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.plan.border import Layout
from wallaroo_runtime.plan.bucket import bucket_ids
from wallaroo_runtime.plan.graph import inputs_of
from wallaroo_runtime.plan.plan import MAX_PORTS, Node, NodeKind, Plan, Stage
from wallaroo_runtime.plan.port import Ports, first_ports
from wallaroo_runtime.topology.model import STATE_KINDS, Part, Sink, Source, State, Step, Topology

NATIVE = "native"  # codec of messages that only one worker can read
# Steps that give each message a new key.
KEYING_KINDS = STATE_KINDS | {"key_by", "collect"}


@dataclass
class Draft:
    """An unfinished plan. Each pass of the compiler fills in some fields, which later passes read.

    Level n of a plan has the nodes after n shuffles.

    Attributes:
        topology: The topology to compile.
        bucket_ids: The chosen id of each bucket.
        ports: The ports of sources, state steps and sinks, which are known before compilation.
        parts: All sources, steps and sinks by path, each after its inputs.
        entry_levels: Name of each state to the level at which all steps with the state run.
        timed: Paths of parts whose messages carry times: steps of states with times, and all parts upstream of them.
        arriving: Paths of parts upstream of steps by time of arrival, and of no step by time in the data.
        levels: Path of each part to the levels at which it emits messages; for a sink, at which it is an exit.
        carried: Paths of sources and steps whose messages must keep their key, because a later step uses it.
        layouts: The nodes of each level, by place. Each place becomes a stage.
        stages: The stages of each level.
        findings: The reasons why the topology cannot be compiled.
    """

    topology: Topology
    bucket_ids: tuple[int, ...]
    ports: Ports
    parts: dict[str, Part] = field(default_factory=dict)
    entry_levels: dict[str, int] = field(default_factory=dict)
    timed: set[str] = field(default_factory=set)
    arriving: set[str] = field(default_factory=set)
    carried: set[str] = field(default_factory=set)
    levels: dict[str, frozenset[int]] = field(default_factory=dict)
    layouts: list[Layout] = field(default_factory=list)
    stages: list[list[Stage]] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)

    def find(self, code: str, part: Part, **values: Any) -> None:
        """Record a finding about a source, step or sink. A topology with findings is refused."""
        pipeline, kind, number = part.path.split("/")
        component = self.topology.component(part.worker, part.path)
        self.findings.append(
            Diagnostic.of(
                code,
                pointer=f"/pipelines/{pipeline}/{kind}/{number}",
                file=component.file if component else "",
                line=component.line if component else 0,
                path=part.path,
                **values,
            )
        )


def order_parts(draft: Draft) -> None:
    """List the sources, steps and sinks so that each is after its inputs: steps in document order, sinks last."""
    draft.parts.update({part.path: part for part in draft.topology.parts()})


def count_ports(draft: Draft) -> None:
    """Refuse a topology with more ports than the header of a frame can number."""
    crossings = len(draft.parts) if len(draft.topology.workers) > 1 else 0
    count = draft.ports.next + crossings
    if count > MAX_PORTS:
        size = f"{count} sources, state steps and sinks"
        too_many = Diagnostic.of("T104", pointer="/pipelines", what="the application", size=size, limit=MAX_PORTS)
        draft.findings.append(too_many)


def check_workers(draft: Draft) -> None:
    """Refuse messages that pass between workers without a common codec, and states that several workers would share."""
    owners: dict[str, Step] = {}
    for part in draft.parts.values():
        codecs, own = set(), set()
        for path in inputs_of(part):
            producer = draft.parts[path]
            assert not isinstance(producer, Sink)
            if producer.worker == part.worker:
                own.add(producer.codec)
                continue
            codecs.add(producer.codec)
            if producer.codec == NATIVE:
                draft.find("P301", part, producer=producer.worker, consumer=part.worker)
        if codecs and isinstance(part, Step) and part.state is not None:
            codecs |= own - {NATIVE}  # a state has one codec for all its input
        if len(codecs) > 1 and NATIVE not in codecs:
            names = ", ".join(f'"{codec}"' for codec in sorted(codecs))
            draft.find("P303", part, what=f"input in several codecs ({names})", fix="give its inputs the same codec")
        if isinstance(part, Step) and part.state is not None:
            owner = owners.setdefault(part.state.name, part)
            if owner.worker != part.worker:
                what = f'state "{part.state.name}" on worker "{part.worker}" and on worker "{owner.worker}"'
                draft.find("P303", part, what=what, fix="give the states names of their own, or use one worker")


def find_levels(draft: Draft) -> None:
    """Find the levels at which every source and step emits messages. Level n of the plan is after n shuffles.

    All steps of one state run at one level, the deepest that any of these steps needs. Moving a step may also move the
    parts downstream of it, so this repeats until nothing moves. A state that feeds itself never settles: it is refused.
    """
    states = {step.state.name for step in draft.topology.state_steps() if step.state}
    moved = True
    while moved and not draft.findings:
        before = dict(draft.entry_levels)
        for part in draft.parts.values():
            _put_on_levels(draft, part, len(states))
        moved = before != draft.entry_levels


def _put_on_levels(draft: Draft, part: Part, deepest: int) -> None:
    levels = {level for path in inputs_of(part) for level in draft.levels[path]} or {0}
    if isinstance(part, Step) and part.state is not None:
        name = part.state.name
        level = max(draft.entry_levels.get(name, 1), max(levels) + 1)
        if level > deepest and not draft.findings:
            fix = "give the second step a state name of its own"
            draft.find("P303", part, what=f'state "{name}" after itself', fix=fix)
        draft.entry_levels[name] = level
        levels = {level}
    draft.levels[part.path] = frozenset(levels)


def find_timed(draft: Draft) -> None:
    """Find the parts whose messages must carry timestamps or keys for windows and states downstream."""
    steps = [(step, step.state.name) for step in draft.topology.state_steps() if step.state]
    states = {name for step, name in steps if step.window or step.time}
    timed = {step.path for step, name in steps if name in states}
    times = {name: time for step, name in steps if (time := step.time or (step.window.time if step.window else ""))}
    upstream: dict[str, set[str]] = {"ingest": set(), "event": set()}
    for part in reversed(draft.parts.values()):
        if isinstance(part, Step) and part.path in timed:
            timed.update(part.inputs)
        for time, paths in upstream.items():
            if isinstance(part, Step) and (part.path in paths or part.state and times.get(part.state.name) == time):
                paths.update(part.inputs)
        if isinstance(part, Step) and (takes_key(part) or part.path in draft.carried and part.kind not in KEYING_KINDS):
            draft.carried.update(part.inputs)
    draft.timed.update(timed)
    draft.arriving.update(upstream["ingest"] - upstream["event"])


def takes_key(step: Step) -> bool:
    """Say whether a step finds its state by the key of the message, without user code that computes a key."""
    return step.state is not None and step.state.key.kind == "message"


def lay_out(draft: Draft) -> None:
    """Give every node a place in its level: its worker, and how often the worker changes on the way to it."""
    for level in range(1 + max(draft.entry_levels.values(), default=0)):
        layout = Layout()
        for worker, node in _entries(draft, level):
            layout.enter(worker, node)
        for part in draft.parts.values():
            here = tuple(path for path in inputs_of(part) if level in draft.levels[path])
            if here:
                _follow(draft, layout, part, here)
        draft.layouts.append(layout)


def build_stages(draft: Draft) -> None:
    """Make the stages of the plan from the nodes that `lay_out` has placed.

    Stages at the beginning of a level, which may have state, get the first numbers. The checkpoint has states under
    these numbers, which must not change if a change of worker adds stages.
    """
    bucket_count = len(draft.bucket_ids)
    closed = [layout.close(lambda path: _crossing(draft, NodeKind.SEND, path)) for layout in draft.layouts]
    beginnings = sum(place.rank == 0 for level in closed for place, _ in level)
    first, later = iter(range(beginnings)), iter(range(beginnings, sum(map(len, closed))))
    for level in closed:
        draft.stages.append(
            [
                Stage(f"s{next(later if place.rank else first)}", place.worker, nodes, bucket_count)
                for place, nodes in level
            ]
        )


def _entries(draft: Draft, level: int) -> Iterator[tuple[str, Node]]:
    ports = draft.ports.parts
    for part in draft.parts.values():
        if isinstance(part, Source) and level == 0:
            is_arriving = part.path in draft.arriving
            yield part.worker, Node(part.path, NodeKind.SOURCE, port=ports[part.path], arrival=is_arriving)
        if isinstance(part, Step) and part.state is not None and draft.entry_levels[part.state.name] == level:
            yield part.worker, _state_node(draft, part, part.state)


def _state_node(draft: Draft, step: Step, state: State) -> Node:
    return Node(
        step.path,
        NodeKind[step.kind.upper()],
        port=draft.ports.parts[step.path],
        state=state.name,
        state_port=draft.ports.states[state.name],
        component=step.component,
        codec=_codec_into(draft, step),
        ttl_ms=state.ttl_ms,
        event_time=step.time == "event",
        timers=step.timers,
        sessions=step.window is not None and step.window.kind == "session",
        visits=step.visits,
    )


def _follow(draft: Draft, layout: Layout, part: Part, inputs: tuple[str, ...]) -> None:
    """Add the node of a part after its inputs. If a key needs no user code, the worker of the inputs computes it."""

    def receive(path: str) -> Node:
        return _crossing(draft, NodeKind.RECEIVE, path)

    if isinstance(part, Step) and part.state is not None and part.state.key.kind != "partition":
        for place, paths in layout.by_place(inputs).items():
            layout.add(place, _key_node(draft, part, paths), receive)
        return
    place = layout.follow(part.worker, inputs)
    if isinstance(part, Sink):
        node = Node(part.path, NodeKind.SINK, inputs, draft.ports.parts[part.path])
    elif isinstance(part, Step) and part.state is not None:
        node = _key_node(draft, part, inputs)
    else:
        assert isinstance(part, Step)
        output = part.name if part.kind == "output" else ""
        node = Node(part.path, NodeKind[part.kind.upper()], inputs, component=part.component, output=output)
        layout.places[part.path] = place
    layout.add(place, node, receive)


def _key_node(draft: Draft, step: Step, inputs: tuple[str, ...]) -> Node:
    return Node(
        step.path,
        NodeKind.KEY,
        inputs,
        draft.ports.parts[step.path],
        timestamps=step.path in draft.timed,
        codec=_codec_into(draft, step),
        keys=takes_key(step),
    )


def _codec_into(draft: Draft, step: Step) -> str:
    """Return the codec of the messages that a state step gets from other workers; empty if it gets none."""
    producers = [draft.parts[path] for path in step.inputs]
    foreign = [part.codec for part in producers if part.worker != step.worker and not isinstance(part, Sink)]
    return foreign[0] if foreign else ""


def _crossing(draft: Draft, kind: NodeKind, path: str) -> Node:
    """Return the SEND or RECEIVE node for messages of a part that pass to another stage of the same level.

    The messages exist only within a task, so the checkpoint does not keep the node's port.
    """
    part = draft.parts[path]
    assert not isinstance(part, Sink)
    port, inputs = draft.ports.next + list(draft.parts).index(path), (path,) if kind is NodeKind.SEND else ()
    is_foreign = any(path in inputs_of(other) and other.worker != part.worker for other in draft.parts.values())
    codec = part.codec if is_foreign and part.codec != NATIVE else ""
    is_timed, has_key = path in draft.timed, path in draft.carried
    return Node(path, kind, inputs, port, codec=codec, keys=has_key, timestamps=is_timed)


PASSES: tuple[Callable[[Draft], None], ...] = (
    order_parts,
    count_ports,
    check_workers,
    find_levels,
    find_timed,
    lay_out,
    build_stages,
)


def compile_topology(
    topology: Topology, *, shuffle_partitions: int, buckets_per_partition: int = 4, ports: Ports | None = None
) -> Plan:
    """Compile a topology to a plan: cut it into stages at the shuffles.

    Args:
        topology: A topology from `load`.
        shuffle_partitions: Number of partitions of each shuffle. A checkpoint keeps it until a rescale.
        buckets_per_partition: Number of buckets of each partition. A checkpoint keeps it until a rescale.
        ports: The ports that a checkpoint keeps; None numbers sources, state steps and sinks in document order.

    Returns:
        The plan, which depends on the arguments alone.

    Raises:
        RunError: T104, P301 or P303 if the topology cannot be compiled, with every finding of the pass that failed.
    """
    draft = Draft(topology, bucket_ids(shuffle_partitions, buckets_per_partition), ports or first_ports(topology))
    for compile_pass in PASSES:
        compile_pass(draft)
        if draft.findings:
            raise RunError(draft.findings, TOPOLOGY)
    levels = tuple(tuple(stages) for stages in draft.stages)
    return Plan(topology.name, draft.ports.parts, levels, shuffle_partitions, draft.bucket_ids)
