"""Group graphs: the inputs, tables and outputs of a group, with Goka's checks."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wallaroo.check import check
from wallaroo.component.signature import call_finding
from wallaroo.component.wrapped_state import is_ttl, ttl_finding
from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import Place, WallarooParameterError
from wallaroo.diagnostic.location import Location, called_from
from wallaroo.goka import edge as kinds
from wallaroo.goka.codec import Codec
from wallaroo.goka.edge import Edge

IGNORE, PROCESS, DECODE = "ignore", "process", "decode"
NIL_HANDLING = (IGNORE, PROCESS, DECODE)
_WITHOUT_CALLBACK = (kinds.JOIN, kinds.LOOKUP, kinds.TABLE, kinds.OUTPUT)
Headers = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True, eq=False)
class GroupGraph:
    """A group of callbacks with its edges (topics, codecs and callbacks), as `define_group` returns it.

    Attributes:
        group: Name of the group.
        all_edges: Edges in the order of the program. To change a graph, define a new group with some of these edges.
        nil_handling: Policy for messages without a value.
        context_wrapper: Converts each context to the object that callbacks get.
        default_headers: Headers of all records that callbacks emit and loop back.
        update_callback: Writes the records of joined tables into the state.
        table_topic: Name of the table's topic, if there is a table.
        loop_topic: Name of the loop's topic, if there is a loop.
        location: Place in the program that defined the group.

    Example:
        >>> from wallaroo import goka
        >>> def forward(ctx, message):
        ...     ctx.emit("copies", ctx.key, message)
        >>> edges = goka.input("lines", goka.String(), forward), goka.output("copies", goka.String())
        >>> graph = goka.define_group("copy", *edges)
        >>> isinstance(graph, goka.GroupGraph), [edge.topic for edge in graph.output_streams], graph.group_table
        (True, ['copies'], None)

    Source: Goka, `goka.GroupGraph`.
    """

    group: str
    all_edges: tuple[Edge, ...]
    nil_handling: str = IGNORE
    context_wrapper: Callable[[Any], Any] | None = None
    default_headers: Headers = field(default_factory=dict)
    update_callback: Callable[..., object] | None = None
    table_topic: str = ""
    loop_topic: str = ""
    location: Location = Location()

    @property
    def input_streams(self) -> tuple[Edge, ...]:
        """The edges that `goka.input` declared."""
        return self._of(kinds.INPUT)

    @property
    def joint_tables(self) -> tuple[Edge, ...]:
        """The edges that `goka.join` declared."""
        return self._of(kinds.JOIN)

    @property
    def lookup_tables(self) -> tuple[Edge, ...]:
        """The edges that `goka.lookup` declared."""
        return self._of(kinds.LOOKUP)

    @property
    def output_streams(self) -> tuple[Edge, ...]:
        """The edges that `goka.output` declared."""
        return self._of(kinds.OUTPUT)

    @property
    def visitors(self) -> tuple[Edge, ...]:
        """The edges that `goka.visitor` declared."""
        return self._of(kinds.VISITOR)

    @property
    def loop_stream(self) -> Edge | None:
        """The edge that `goka.loop` declared, with the name of its topic; None if the group has no loop."""
        return next(iter(self._of(kinds.LOOP)), None)

    @property
    def group_table(self) -> Edge | None:
        """The edge that `goka.persist` declared, with the name of its topic; None if the group has no table."""
        return next(iter(self._of(kinds.TABLE)), None)

    def _of(self, kind: str) -> tuple[Edge, ...]:
        return tuple(edge for edge in self.all_edges if edge.kind == kind)


def define_group(
    group: str,
    *edges: Edge | Sequence[Edge],
    nil_handling: str = IGNORE,
    context_wrapper: Callable[[Any], Any] | None = None,
    default_headers: Headers | None = None,
    update_callback: Callable[..., object] | None = None,
    table_suffix: str = kinds.TABLE_SUFFIX,
    loop_suffix: str = kinds.LOOP_SUFFIX,
) -> GroupGraph:
    """Return the graph of a group: its topics, codecs and callbacks.

    Args:
        group: Name of the group. The names of its table, its loop and its state begin with this name.
        edges: Results of `input`, `inputs`, `loop`, `join`, `lookup`, `persist`, `output` and `visitor`.
        nil_handling: Policy for messages without a value: "ignore" drops them, "process" passes None to the callback,
            "decode" passes None to the codec.
        context_wrapper: Converts each `Context` to the object that callbacks get, e.g. one that also counts calls.
        default_headers: Headers of all records that callbacks emit and loop back, but not of the table's records.
        update_callback: `f(update, storage, key, value)` that stores the records of joined tables in the state. The
            default stores a record's value, or removes the key if the record has no value. See `Update` and `Storage`.
        table_suffix: End of the name of the table's topic.
        loop_suffix: End of the name of the loop's topic.

    Raises:
        WallarooParameterError: The graph has faults (T274, T202, T207); the error lists all of them.

    Example:
        >>> from wallaroo import goka
        >>> def count(ctx, message):
        ...     ctx.set_value((ctx.value() or 0) + 1)
        >>> edges = goka.input("clicks", goka.String(), count), goka.persist(goka.Int64())
        >>> graph = goka.define_group("my-group", *edges)
        >>> str(graph.group_table)
        'my-group-table/Int64'

    Source: Goka, `goka.DefineGroup`, and `Validate`, which its `NewProcessor` calls.
    """
    at, findings = called_from(), list[Diagnostic]()
    topics = {kinds.TABLE: f"{group}{table_suffix}", kinds.LOOP: f"{group}{loop_suffix}"}
    named = _named(group, edges, topics, at, findings)
    findings += (_finding(each, group, *reason) for each, reason in _faults(named, topics, at))
    findings += _types(named)
    if nil_handling not in NIL_HANDLING:
        expected = " or ".join(f'"{each}"' for each in NIL_HANDLING)
        findings.append(_wrong("define_group", "nil_handling", nil_handling, expected, at))
    functions = (("context_wrapper", context_wrapper, ("ctx",)), ("update_callback", update_callback, _UPDATE))
    for name, function, parameters in functions:
        findings += _callable("define_group", name, function, parameters, at=at) if function is not None else ()
    if findings:
        raise WallarooParameterError(findings)
    return GroupGraph(
        group,
        tuple(named),
        nil_handling,
        context_wrapper,
        dict(default_headers or {}),
        update_callback,
        topics[kinds.TABLE],
        topics[kinds.LOOP],
        at,
    )


_UPDATE = ("update", "storage", "key", "value")


def _named(
    group: Any, edges: Iterable[Any], topics: Mapping[str, str], at: Location, findings: list[Diagnostic]
) -> list[Edge]:
    """Return all edges, with the topics of table and loop filled in; record T207 for values that are not edges."""
    if not isinstance(group, str) or not group:
        findings.append(_wrong("define_group", "group", group, "a name", at))
    named: list[Edge] = []
    for each in edges:
        for one in each if isinstance(each, (list, tuple)) else (each,):
            if not isinstance(one, Edge):
                findings.append(_wrong("define_group", "edges", one, "edges, e.g. what goka.input returns", at))
            elif one.kind in topics:
                named.append(replace(one, topic=topics[one.kind]))
            else:
                named.append(one)
    return named


def _faults(
    edges: Sequence[Edge], topics: Mapping[str, str], at: Location
) -> Iterator[tuple[Location, tuple[str, str]]]:
    """Yield place, reason and remedy of each edge that Goka refuses."""
    read = Counter(edge.topic for edge in edges if edge.kind in (kinds.INPUT, kinds.LOOP))
    for edge in edges:
        if edge.kind == kinds.INPUT and edge.topic == "":
            yield edge.location, ("input topic cannot be empty", "give the topic's name")
        if edge.kind == kinds.INPUT and edge.topic and read[edge.topic] > 1:
            read[edge.topic] = 0
            reason = f"callback for topic {edge.topic} already exists; it is illegal to consume a topic twice"
            yield edge.location, (reason, "read it with one input, whose callback does both")
        if edge.kind != kinds.VISITOR and isinstance(edge.topic, str) and edge.topic and not check.is_topic(edge.topic):
            reason = f"Kafka has no topic of the name {shown(edge.topic)}"
            fix = f"give group and topics names of {check.TOPIC_NAMES}"
            yield edge.location, (reason, fix)
    for kind, what in ((kinds.LOOP, "loop stream"), (kinds.TABLE, "group table")):
        own = [edge for edge in edges if edge.kind == kind]
        if len(own) > 1:
            yield own[1].location, (f"more than one {what} in group graph", f"leave one goka.{kind}")
        for edge in edges:
            if edge.kind not in (kind, kinds.VISITOR) and edge.topic == topics[kind]:
                does = "ctx.loopback" if kind == kinds.LOOP else "ctx.value and ctx.set_value"
                yield edge.location, (f"should not directly use {what}", f"leave {edge.kind} out, and use {does}")
    if not any(edge.kind == kinds.INPUT for edge in edges):
        yield at, ("no input stream in group graph", "add goka.input(...)")
    visitors = [edge for edge in edges if edge.kind == kinds.VISITOR]
    if visitors and not any(edge.kind == kinds.TABLE for edge in edges):
        reason = "visitors cannot be used in a stateless processor"
        yield visitors[0].location, (reason, "add goka.persist(...), or leave the visitor out")


def _types(edges: Iterable[Edge]) -> Iterator[Diagnostic]:
    """Yield T207 and T202 for invalid parameters of edges."""
    for edge in edges:
        if not isinstance(edge.topic, str) or (not edge.topic and edge.kind != kinds.INPUT):
            parameter = "name" if edge.kind == kinds.VISITOR else "topic"
            yield _wrong(edge.kind, parameter, edge.topic, "a name", edge.location)
        if edge.kind != kinds.VISITOR and (isinstance(edge.codec, type) or not isinstance(edge.codec, Codec)):
            yield _wrong(
                edge.kind, "codec", edge.codec, "an object with encode and decode, e.g. goka.String()", edge.location
            )
        elif edge.kind != kinds.VISITOR:
            for name, parameter in (("encode", "value"), ("decode", "data")):
                yield from _callable(edge.kind, name, getattr(edge.codec, name), (parameter,), at=edge.location)
        if not (edge.ttl is None or is_ttl(edge.ttl)):
            yield replace(ttl_finding(f"goka.{edge.kind}", edge.ttl), **edge.location.shown()._asdict())
        if edge.kind not in _WITHOUT_CALLBACK:
            yield from _callable(edge.kind, "callback", edge.callback, ("ctx", "message"), at=edge.location)


def _callable(method: str, name: str, value: Any, parameters: tuple[str, ...], *, at: Location) -> Iterator[Diagnostic]:
    if not callable(value):
        yield _wrong(method, name, value, f"a function of {', '.join(parameters)}", at)
    elif finding := call_finding(name.replace("_", " "), method, value, parameters):
        yield finding


def _wrong(method: str, parameter: str, actual: Any, expected: str, at: Location) -> Diagnostic:
    place = Place(f"goka.{method}", "", at, [])
    place.wrong(parameter, shown(actual), expected)
    return place.findings[0]


def _finding(at: Location, group: Any, reason: str, fix: str) -> Diagnostic:
    return Diagnostic.of("T274", **at.shown()._asdict(), what="group", name=group, reason=reason, fix=fix)
