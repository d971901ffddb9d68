"""Compiles a topology to a plan: passes over one draft, in a fixed order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.plan.bucket import bucket_ids
from wallaroo_runtime.plan.port import Ports, first_ports
from wallaroo_runtime.plan.stage import TICK_PORT, Node, NodeKind, Plan, Stage
from wallaroo_runtime.topology.model import Part, Sink, Source, Step, Topology


@dataclass
class Draft:
    """What the passes fill in.

    Attributes:
        topology: What is compiled.
        bucket_ids: Chosen ids, by bucket.
        given: The ports.
        parts: All sources, steps and sinks, each after its inputs.
        ports: Path to port.
        entry_levels: State name to the one level at which its steps run.
        timed: Paths of the state steps and windows that must know when messages came: windows, and what leads to one.
        levels: Path to the levels at which a node of that path passes messages on; for sinks, at which it is an exit.
        stages: The stages made so far.
        findings: What makes the topology impossible to compile.
    """

    topology: Topology
    bucket_ids: tuple[int, ...]
    given: Ports
    parts: dict[str, Part] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    entry_levels: dict[str, int] = field(default_factory=dict)
    timed: set[str] = field(default_factory=set)
    levels: dict[str, frozenset[int]] = field(default_factory=dict)
    stages: list[list[Stage]] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)

    def find(self, code: str, part: Part, **values: Any) -> None:
        """Record a finding at a part of the topology."""
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


def inputs_of(part: Part) -> tuple[str, ...]:
    """Return the paths that a part reads; none for a source."""
    return () if isinstance(part, Source) else part.inputs


def order_parts(draft: Draft) -> None:
    """Put every part after its inputs: sources, steps (which the document orders), sinks."""
    draft.parts.update({part.path: part for part in draft.topology.parts()})


def number_ports(draft: Draft) -> None:
    """Take over the ports of sources, state steps and sinks."""
    count = draft.given.next
    if count > TICK_PORT:
        draft.findings.append(Diagnostic.of("P302", pointer="/pipelines", count=count, limit=TICK_PORT))
    draft.ports.update(draft.given.parts)


def check_workers(draft: Draft) -> None:
    """Refuse messages and states that would have to pass between workers in a worker's own form."""
    owners: dict[str, Step] = {}
    for part in draft.parts.values():
        for path in inputs_of(part):
            producer = draft.parts[path]
            if producer.worker == part.worker or isinstance(producer, Sink):
                continue
            if producer.codec == "native":
                draft.find("P301", part, producer=producer.worker, consumer=part.worker)
            else:
                what = f'a message of worker "{producer.worker}" on worker "{part.worker}"'
                draft.find("P304", part, what=what, fix="run both on one worker")
        if isinstance(part, Step) and part.state is not None:
            owner = owners.setdefault(part.state.name, part)
            if owner.worker != part.worker:
                what = f'state "{part.state.name}" on worker "{part.worker}" beside worker "{owner.worker}"'
                draft.find("P303", part, what=what, fix="give the states names of their own, or use one worker")


def find_levels(draft: Draft) -> None:
    """Find the levels of every part.

    All steps of one state run at one level: the deepest that any of them needs. Lifting a step may lift what follows
    it, so this repeats until nothing moves; a state that feeds itself would move forever.
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
            draft.find("P303", part, what=f'state "{name}" behind itself', fix=fix)
        draft.entry_levels[name] = level
        levels = {level}
    draft.levels[part.path] = frozenset(levels)


def find_timed(draft: Draft) -> None:
    """Find which frames must carry timestamps: messages keep theirs through all steps, and windows need them."""
    needed: set[str] = set()
    for part in reversed(draft.parts.values()):
        if isinstance(part, Step) and (part.window is not None or part.path in needed):
            needed.add(part.path)
            needed.update(part.inputs)
            if part.state is not None:
                draft.timed.add(part.path)


def build_stages(draft: Draft) -> None:
    """Gather, for each level, the nodes of each worker."""
    depth = 1 + max(draft.entry_levels.values(), default=0)
    bucket_count = len(draft.bucket_ids)
    number = 0
    for level in range(depth):
        nodes: dict[str, list[Node]] = {}
        for worker, node in (*_entries(draft, level), *_followers(draft, level)):
            nodes.setdefault(worker, []).append(node)
        stages = []
        for worker, found in nodes.items():
            stages.append(Stage(f"s{number}", worker, tuple(found), bucket_count))
            number += 1
        draft.stages.append(stages)


def _entries(draft: Draft, level: int) -> Iterator[tuple[str, Node]]:
    for part in draft.parts.values():
        if isinstance(part, Source) and level == 0:
            yield part.worker, Node(part.path, NodeKind.SOURCE, port=draft.ports[part.path])
        if isinstance(part, Step) and part.state is not None:
            state, port = part.state.name, draft.ports[part.path]
            state_port = draft.given.states[state]
            if draft.entry_levels[state] == level:
                yield part.worker, _step_node(part, (), port, state, state_port)


def _followers(draft: Draft, level: int) -> Iterator[tuple[str, Node]]:
    for part in draft.parts.values():
        here = tuple(path for path in inputs_of(part) if level in draft.levels[path])
        if not here:
            continue
        if isinstance(part, Sink):
            yield part.worker, Node(part.path, NodeKind.SINK, here, draft.ports[part.path])
        elif isinstance(part, Step) and part.state is not None:
            timed = part.path in draft.timed
            yield part.worker, Node(part.path, NodeKind.KEY, here, draft.ports[part.path], timestamps=timed)
        elif isinstance(part, Step):
            yield part.worker, _step_node(part, here)


def _step_node(part: Step, inputs: tuple[str, ...], port: int = 0, state: str = "", state_port: int = 0) -> Node:
    kind = NodeKind[part.kind.upper()]
    return Node(part.path, kind, inputs, port, state, state_port, component=part.component)


PASSES: tuple[Callable[[Draft], None], ...] = (
    order_parts,
    number_ports,
    check_workers,
    find_levels,
    find_timed,
    build_stages,
)


def compile_topology(
    topology: Topology, *, shuffle_partitions: int, buckets_per_partition: int = 4, ports: Ports | None = None
) -> Plan:
    """Cut a topology into stages at the shuffles.

    Args:
        topology: A topology that `load` found correct.
        shuffle_partitions: How many partitions each shuffle has; fixed for the life of a checkpoint.
        buckets_per_partition: How many buckets of keys each partition gets; fixed likewise.
        ports: The ports that a checkpoint keeps; None: sources, state steps and sinks are numbered in document order.

    Returns:
        The plan; it depends on the arguments alone.

    Raises:
        RunError: The topology cannot be compiled (P301 to P304); every finding of the pass that failed.
    """
    draft = Draft(topology, bucket_ids(shuffle_partitions, buckets_per_partition), ports or first_ports(topology))
    for compile_pass in PASSES:
        compile_pass(draft)
        if draft.findings:
            raise RunError(draft.findings, TOPOLOGY)
    levels = tuple(tuple(stages) for stages in draft.stages)
    return Plan(topology.name, dict(draft.ports), levels, shuffle_partitions, draft.bucket_ids)
