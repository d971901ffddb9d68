"""Numbers of origins: the egress knows results in real-time mode by them, and what comes again after a kill."""

from collections.abc import Mapping

from wallaroo_runtime.plan.stage import ENTRIES, EXITS, Node, NodeKind, Plan, Stage

CROSSINGS = {NodeKind.SEND, NodeKind.RECEIVE}  # they are on the ways of other nodes
FIRST = -1  # the block of the stage over the sources, which has no origins
Place = tuple[object, ...]


def blocks_of(plan: Plan) -> dict[str, int]:
    """Return the number of the first block of origins of each stage.

    Those with state have the first blocks of origins, in their order: Spark's store has their states under these
    numbers, which must not change when other stages come or go. One without state has a block for each entry and each
    stage that may send there, which have blocks before it.
    """
    blocks = {stage.id: number for number, stage in enumerate(stage for stage in plan.stages if stage.has_state)}
    free = len(blocks)
    for stage in plan.stages:
        if not stage.has_state:
            blocks[stage.id] = free
            free += len(stage.entries) * (free + 1) if stage is not plan.levels[0][0] else 0
    return blocks


def is_kept(before: Plan, after: Plan, matched: Mapping[str, str]) -> bool:
    """Return whether all parts that both plans have get the same messages, and give what they give in the same places.

    Then a repetition of input by the later plan drops just what the earlier one has delivered of it, if the code of
    the parts is the same.

    Args:
        before: The plan that has delivered.
        after: The plan that shall go on, with the ports of `before`.
        matched: Path of each part of `after` that `before` has to its path there.
    """
    numbers = numbering(after, {path: matched.get(path, f"{path} (new)") for path in _paths(after)})
    return all(numbers.get(path, places) == places for path, places in numbering(before).items())


def numbering(plan: Plan, names: Mapping[str, str] | None = None) -> dict[str, list[Place]]:
    """Return for each part what the marks of its results and dead letters depend on.

    The egress has a mark for each port and origin: the sequence of the last result, and how many results of that
    sequence have left; of dead letters how many of each origin and sequence. So it matters

    - which stages a part runs in, and their blocks of origins: an origin is a bucket of a block. A stage without state
      has a block for each of its entries and each block that sends there, in the order of its entries' ports.
    - for the bucket: by which state step, and with which key, messages come to the part;
    - for the sequences: from which sources they come (what derives from a message or tick has its sequence);
    - for the number within a sequence: all steps on the way, and in which order of the stage, since each may give none
      or several, and all steps that share a state with one of them.

    It does not matter which other parts there are, how workers are called, and which visits and ticks a stage takes:
    these go to all buckets, and to stages with state alone, whose blocks do not depend on their entries.

    Args:
        plan: What runs.
        names: What each part is called, by path; None: its path.
    """
    walk = _Walk(plan, names or {})
    found: dict[str, list[Place]] = {}
    for stage in plan.stages:
        for node in (each for each in stage.nodes if each.kind not in CROSSINGS):
            found.setdefault(walk.name(node), []).append(walk.place(stage, node))
    return found


def _paths(plan: Plan) -> set[str]:
    return {node.path for stage in plan.stages for node in stage.nodes}


class _Walk:
    """Follows messages of a plan back to their sources."""

    def __init__(self, plan: Plan, names: Mapping[str, str]) -> None:
        self._names, self._blocks, self._first = names, blocks_of(plan), plan.levels[0][0]
        self._levels = {stage.id: number for number, level in enumerate(plan.levels) for stage in level}
        self._exits = [(stage, node) for stage in plan.stages for node in stage.exits]
        self._known: dict[tuple[str, Node], Place] = {}

    def name(self, node: Node) -> str:
        return self._names.get(node.path, node.path)

    def place(self, stage: Stage, node: Node) -> Place:
        """Return where a node gives what it gives, and all nodes before it in their order."""
        if (stage.id, node) not in self._known:
            way = _way(stage, node)
            at = {each.path: number for number, each in enumerate(way) if each.kind not in EXITS}
            nodes = tuple(
                (each.kind, self.name(each), *sorted(at[path] for path in each.inputs), self._entry(stage, each))
                for each in way
            )
            self._known[stage.id, node] = (self._origins(stage, way), nodes)
        return self._known[stage.id, node]

    def _origins(self, stage: Stage, way: list[Node]) -> tuple[int, ...]:
        """Return the blocks of the origins of what comes this way, as the operators number them."""
        block = self._blocks[stage.id]
        if stage is self._first:
            return (FIRST,)
        if stage.has_state:
            return (block,)
        ports = sorted(stage.entry_ports)
        entries = [(ports.index(node.port), node) for node in way if node.kind is NodeKind.RECEIVE]
        senders = [
            (number, origin)
            for number, node in entries
            for sender, exit_ in self._senders(stage, node)
            for origin in self._origins(sender, _way(sender, exit_))
        ]
        return tuple(sorted({block + number * (block + 1) + origin + 1 for number, origin in senders}))

    def _entry(self, stage: Stage, node: Node) -> Place:
        """Return by what ways messages come to an entry, and to others with its state; empty: it is none."""
        if node.kind not in ENTRIES or node.kind is NodeKind.SOURCE:
            return ()
        if node.kind is NodeKind.RECEIVE:
            return tuple(self.place(*sender) for sender in self._senders(stage, node))
        sharing = sorted((each for each in stage.nodes if each.state == node.state), key=lambda each: each.port)
        return tuple(
            (each.kind, self.name(each), *(self.place(*sender) for sender in self._keyed(each))) for each in sharing
        )

    def _senders(self, stage: Stage, entry: Node) -> list[tuple[Stage, Node]]:
        """Return the exits of this level that send to an entry."""
        level = self._levels[stage.id]
        return [
            (sender, node)
            for sender, node in self._exits
            if node.kind is NodeKind.SEND and node.port == entry.port and self._levels[sender.id] == level
        ]

    def _keyed(self, entry: Node) -> list[tuple[Stage, Node]]:
        """Return the exits by which messages come to a state step."""
        return [each for each in self._exits if each[1].kind is NodeKind.KEY and each[1].port == entry.port]


def _way(stage: Stage, node: Node) -> list[Node]:
    """Return a node and all nodes of its stage before it, in their order."""
    wanted, way = set(node.inputs), [node]
    for each in reversed(stage.nodes[: stage.nodes.index(node)]):
        if each.path in wanted and each.kind not in EXITS:
            way.append(each)
            wanted.update(each.inputs)
    return way[::-1]
