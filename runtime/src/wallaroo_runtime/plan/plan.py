"""Declares the plan as data: the result of the compiler, and the input of an engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from wallaroo.message.frame import CONTROL_PORTS, TICK_PORT, VISIT_PORT

FRAME_BYTES = 1 << 20
MAX_PORTS = min(CONTROL_PORTS)


class NodeKind(IntEnum):
    """The kind of a stage's node, with the numbers of the protocol's `NodeKind`."""

    SOURCE = 1
    COMPUTATION = 2
    COMPUTATION_MULTI = 3
    STATE_COMPUTATION = 4
    STATE_COMPUTATION_MULTI = 5
    KEY = 6
    SINK = 7
    KEY_BY = 8
    COLLECT = 9
    WINDOW = 10
    SEND = 11
    RECEIVE = 12
    OUTPUT = 13


STATE_ENTRIES = frozenset({NodeKind.STATE_COMPUTATION, NodeKind.STATE_COMPUTATION_MULTI, NodeKind.WINDOW})
ENTRIES = STATE_ENTRIES | {NodeKind.SOURCE, NodeKind.RECEIVE}
EXITS = frozenset({NodeKind.KEY, NodeKind.SINK, NodeKind.SEND})


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a stage: a source, step or sink, or a point where messages enter or leave the stage.

    Attributes:
        path: Path in the topology. A KEY exit has the path of the state step to which it leads. SEND and RECEIVE have
            the path of the part whose messages pass.
        inputs: Paths of the inputs, which are nodes of the same stage; empty for entries.
        port: Entries and exits: the port in the header of their frames; else 0.
        state: State kinds and windows: the state's name; else empty.
        state_port: State kinds and windows: the port in the header of state log frames; else 0.
        timestamps: KEY, SEND, RECEIVE: whether frames carry timestamps of messages, because a state with times follows.
        component: Name under which a library worker registered the component; empty if it is found by path.
        codec: Codec of messages from or to another worker; empty for the worker's own form.
        keys: SEND, RECEIVE: whether frames carry the messages' keys. KEY: whether the messages carry the key already.
        output: OUTPUT: name of the output in its computation; else empty.
        ttl_ms: State kinds: how long a key's state stays without a message of the key; 0 forever.
        event_time: State kinds with `ttl_ms` or timers: whether they use times in the data, not times of arrival.
        timers: State kinds: names of the timers that the step sets.
        sessions: WINDOW: whether its windows are sessions.
        visits: State kinds: names of the visits for which the step has visitors.
        watermarks: Windows, state kinds with `event_time`: whether ticks have times of the data instead of the clock.
        arrival: SOURCE: whether messages have times of arrival, because no step downstream uses times in the data.
    """

    path: str
    kind: NodeKind
    inputs: tuple[str, ...] = ()
    port: int = 0
    state: str = ""
    state_port: int = 0
    timestamps: bool = False
    component: str = ""
    codec: str = ""
    keys: bool = False
    output: str = ""
    ttl_ms: int = 0
    event_time: bool = False
    timers: tuple[str, ...] = ()
    sessions: bool = False
    visits: tuple[str, ...] = ()
    watermarks: bool = False
    arrival: bool = False

    @property
    def is_timed(self) -> bool:
        """Whether the node is a state computation with a ttl or timers."""
        return self.ttl_ms > 0 or bool(self.timers)


@dataclass(frozen=True, slots=True)
class Stage:
    """The steps that one call of a worker runs, in topological order. A stage ends at a shuffle or a change of worker.

    Attributes:
        id: "s0", "s1", ... in the order of levels. Stages at the beginning of a level are numbered before the others.
        worker: Name of the worker that runs the stage.
        nodes: The nodes, each after its inputs.
        bucket_count: Number of buckets. Keys hash to 0 .. bucket_count-1.
        frame_bytes: A worker closes an output frame when its body exceeds this size.
    """

    id: str
    worker: str
    nodes: tuple[Node, ...]
    bucket_count: int
    frame_bytes: int = FRAME_BYTES

    @property
    def entries(self) -> tuple[Node, ...]:
        """The nodes at which frames enter the stage."""
        return tuple(node for node in self.nodes if node.kind in ENTRIES)

    @property
    def entry_ports(self) -> frozenset[int]:
        """Ports of the frames that enter the stage, with the ports of ticks and visits if a step needs them."""
        ports = {node.port for node in self.entries}
        if any(node.kind is NodeKind.WINDOW or node.is_timed for node in self.nodes):
            ports.add(TICK_PORT)
        if any(node.visits for node in self.nodes):
            ports.add(VISIT_PORT)
        return frozenset(ports)

    @property
    def exits(self) -> tuple[Node, ...]:
        """The nodes at which frames leave the stage."""
        return tuple(node for node in self.nodes if node.kind in EXITS)

    @property
    def has_state(self) -> bool:
        """Whether a node of the stage has state."""
        return any(node.kind in STATE_ENTRIES for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Plan:
    """A topology, cut into stages at the shuffles.

    Attributes:
        application: Name of the application.
        ports: Path of a source, state step or sink to the port of its frames.
        levels: Level 0 holds the stages with the sources, level k the stages after k shuffles. A frame for an entry of
            a later level passes through a level unchanged.
        shuffle_partitions: Number of partitions of each shuffle.
        bucket_ids: The id of each bucket b for Spark, whose hash leads to shuffle partition b % shuffle_partitions.
    """

    application: str
    ports: Mapping[str, int]
    levels: tuple[tuple[Stage, ...], ...]
    shuffle_partitions: int
    bucket_ids: tuple[int, ...]

    @property
    def bucket_count(self) -> int:
        """Number of buckets, to which keys hash."""
        return len(self.bucket_ids)

    @property
    def targets(self) -> list[int]:
        """For each partition, a number whose hash leads to this partition in Spark's shuffle."""
        return list(self.bucket_ids[: self.shuffle_partitions])

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, level by level."""
        return tuple(stage for level in self.levels for stage in level)

    @property
    def later_ports(self) -> list[frozenset[int]]:
        """For each level, the ports of the frames that the level only passes on, because later levels receive them."""
        ports = [frozenset[int]().union(*(stage.entry_ports for stage in level)) for level in self.levels]
        return [frozenset[int]().union(*ports[number + 1 :]) for number in range(len(ports))]
