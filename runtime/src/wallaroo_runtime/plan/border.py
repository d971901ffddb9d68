"""Cuts a level (all nodes between two shuffles) into stages where messages pass from one worker to another.

Within a level, the place of a node is its worker, and the number of changes of worker before the node. The nodes of one
place make one stage. The stages of a level run one after the other in the same task, and receive the messages that
earlier stages sent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from wallaroo_runtime.plan.plan import Node


@dataclass(frozen=True, slots=True, order=True)
class StagePlace:
    """Identifies a future stage within a level (all nodes between two shuffles).

    Attributes:
        rank: Number of changes of worker before the nodes.
        worker: Name of the worker that runs the nodes.
    """

    rank: int
    worker: str


@dataclass(slots=True)
class Layout:
    """Collects the nodes of one level (all nodes between two shuffles) by their future stages.

    Attributes:
        places: Path of each part that emits messages at this level to its place.
        nodes: The nodes of each place: first the entries, then the nodes downstream of them.
        sent: For each place the paths of parts whose messages are sent to other places, in order.
    """

    places: dict[str, StagePlace] = field(default_factory=dict)
    nodes: dict[StagePlace, list[Node]] = field(default_factory=dict)
    sent: dict[StagePlace, dict[str, None]] = field(default_factory=dict)
    _received: dict[StagePlace, set[str]] = field(default_factory=dict)

    def enter(self, worker: str, node: Node) -> None:
        """Add an entry node at the beginning of the level: a source, or a state step that reads a shuffle."""
        self.places[node.path] = StagePlace(0, worker)
        self.nodes.setdefault(StagePlace(0, worker), []).append(node)

    def follow(self, worker: str, inputs: Sequence[str]) -> StagePlace:
        """Return the place of a node of `worker` that reads `inputs`: a stage after the stages of all inputs."""
        ranks = (self.places[path].rank + (self.places[path].worker != worker) for path in inputs)
        return StagePlace(max(ranks), worker)

    def add(self, place: StagePlace, node: Node, receive: Callable[[str], Node]) -> None:
        """Add a node to a future stage. For each input from another stage of the level, first add a RECEIVE node."""
        nodes = self.nodes.setdefault(place, [])
        for path in node.inputs:
            if self.places[path] != place and path not in self._received.setdefault(place, set()):
                self._received[place].add(path)
                self.sent.setdefault(self.places[path], {})[path] = None
                nodes.append(receive(path))
        nodes.append(node)

    def by_place(self, inputs: Iterable[str]) -> Mapping[StagePlace, tuple[str, ...]]:
        """Group inputs, given as paths of sources and steps, by the future stages that emit their messages."""
        paths: dict[StagePlace, tuple[str, ...]] = {}
        for path in inputs:
            paths[self.places[path]] = (*paths.get(self.places[path], ()), path)
        return paths

    def close(self, send: Callable[[str], Node]) -> list[tuple[StagePlace, tuple[Node, ...]]]:
        """Return the place and the nodes of each future stage. Stages are in the order in which they run.

        A SEND node is added for each source or step whose messages another stage of the level receives.
        """
        order = sorted(self.nodes, key=lambda place: place.rank)  # the sort keeps the order of equal ranks
        return [(place, (*self.nodes[place], *map(send, self.sent.get(place, {})))) for place in order]
