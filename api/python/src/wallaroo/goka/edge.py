"""Edges of a group graph: the topics that a group reads and writes, each with its codec and its callback."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from wallaroo.diagnostic.location import Location, called_from

INPUT, LOOP, JOIN, LOOKUP, TABLE, OUTPUT, VISITOR = "input", "loop", "join", "lookup", "persist", "output", "visitor"
TABLE_SUFFIX, LOOP_SUFFIX = "-table", "-loop"

Callback = Callable[[Any, Any], object]


@dataclass(frozen=True, slots=True)
class Edge:
    """A topic of a group, with its use, codec and callback. Functions such as `input` and `output` make edges.

    Attributes:
        kind: Name of the function that made the edge.
        topic: Name of the topic, or of the visitor. For `persist` and `loop` it is empty until the group is defined.
        codec: Codec of the topic's values; None for a visitor.
        callback: Called with a context and each message; None for edges without a callback.
        location: Place in the program that made the edge.
        ttl: For `persist`, how long a key without messages keeps its value; None keeps it forever.

    Example:
        >>> from wallaroo import goka
        >>> isinstance(goka.output("totals", goka.Int64()), Edge)
        True
    """

    kind: str
    topic: str
    codec: Any = None
    callback: Callback | None = None
    location: Location = Location()
    ttl: timedelta | None = None

    def __str__(self) -> str:
        return f"{self.topic}/{type(self.codec).__name__}"


def input(topic: str, codec: Any, callback: Callback) -> Edge:
    """Read a topic: `callback(ctx, message)` runs for each message. Messages of a key are processed in order.

    Args:
        topic: Name of the topic.
        codec: Codec that decodes the topic's values, e.g. `String()`.
        callback: Gets a `Context` and the message. An exception fails the message.

    Example:
        >>> from wallaroo import goka
        >>> def count(ctx, message):
        ...     ctx.set_value((ctx.value() or 0) + 1)
        >>> goka.define_group("counts", goka.input("clicks", goka.String(), count), goka.persist(goka.Int64())).group
        'counts'

    Source: Goka, `goka.Input`.
    """
    return Edge(INPUT, topic, codec, callback, called_from())


def inputs(topics: Sequence[str], codec: Any, callback: Callback) -> list[Edge]:
    """Read several topics with one codec and callback.

    Args:
        topics: Names of the topics.
        codec: As for `input`.
        callback: As for `input`.

    Example:
        >>> from wallaroo import goka
        >>> def count(ctx, message):
        ...     ctx.set_value((ctx.value() or 0) + 1)
        >>> [edge.topic for edge in goka.inputs(["clicks", "views"], goka.String(), count)]
        ['clicks', 'views']

    Source: Goka, `goka.Inputs`.
    """
    at = called_from()
    return [Edge(INPUT, topic, codec, callback, at) for topic in topics]


def loop(codec: Any, callback: Callback) -> Edge:
    """Read the messages that the group itself sends with `ctx.loopback`, through the topic GROUP-loop.

    Args:
        codec: Codec of the loop's values.
        callback: As for `input`.

    Example:
        >>> from wallaroo import goka
        >>> def greet(ctx, name):
        ...     ctx.loopback(name, "hello")
        >>> def note(ctx, greeting):
        ...     ctx.set_value(greeting)
        >>> edges = goka.input("names", goka.String(), greet), goka.loop(goka.String(), note)
        >>> goka.define_group("greetings", *edges, goka.persist(goka.String())).loop_stream.topic
        'greetings-loop'

    Source: Goka, `goka.Loop`.
    """
    return Edge(LOOP, "", codec, callback, called_from())


def join(topic: str, codec: Any) -> Edge:
    """Join another table: callbacks read the table's value for the key of their message with `ctx.join(topic)`.

    The table may have any number of partitions, because its records are repartitioned by key.

    Args:
        topic: Name of the table's topic, e.g. `group_table("users")`.
        codec: Codec that decodes the topic's values.

    Example:
        >>> from wallaroo import goka
        >>> def bill(ctx, order):
        ...     ctx.emit("bills", ctx.key, f"{ctx.join('users-table')} pays {order}")
        >>> edges = goka.input("orders", goka.String(), bill), goka.output("bills", goka.String())
        >>> goka.define_group("billing", *edges, goka.join("users-table", goka.String())).joint_tables[0].topic
        'users-table'

    Source: Goka, `goka.Join`.
    """
    return Edge(JOIN, topic, codec, None, called_from())


def lookup(topic: str, codec: Any) -> Edge:
    """Keep a whole table in each worker process: callbacks read the value of any key with `ctx.lookup(topic, key)`.

    Args:
        topic: Name of the table's topic.
        codec: Codec that decodes the topic's values.

    Example:
        >>> from wallaroo import goka
        >>> goka.lookup("prices-table", goka.Int64()).topic
        'prices-table'

    Source: Goka, `goka.Lookup`.
    """
    return Edge(LOOKUP, topic, codec, None, called_from())


def persist(codec: Any, *, ttl: timedelta | None = None) -> Edge:
    """Keep a value per key in the group table, the topic GROUP-table, for `ctx.value()` and `ctx.set_value(...)`.

    Args:
        codec: Codec of the table's values.
        ttl: How long a key keeps its value after its last message from an input or the loop; None keeps it forever.
            The end of a value is as `ctx.delete()`. Records of joined tables and visits do not prolong the life. Goka
            has no such option.

    Example:
        >>> from wallaroo import goka
        >>> from datetime import timedelta
        >>> goka.persist(goka.Int64()).kind, goka.persist(goka.Int64(), ttl=timedelta(hours=1)).ttl
        ('persist', datetime.timedelta(seconds=3600))

    Source: Goka, `goka.Persist`.
    """
    return Edge(TABLE, "", codec, None, called_from(), ttl)


def output(topic: str, codec: Any) -> Edge:
    """Let callbacks write to a topic: `ctx.emit(topic, key, value)`.

    Args:
        topic: Name of the topic.
        codec: Codec that encodes the topic's values.

    Example:
        >>> from wallaroo import goka
        >>> goka.output("totals", goka.Int64()).topic
        'totals'

    Source: Goka, `goka.Output`.
    """
    return Edge(OUTPUT, topic, codec, None, called_from())


def visitor(name: str, callback: Callback) -> Edge:
    """Run `callback(ctx, metadata)` for every key of the group table each time a visit is requested.

    Args:
        name: Name of the visitor.
        callback: Gets a `Context` whose topic is the visitor's name, and the metadata of the request, as bytes.

    Example:
        >>> from wallaroo import goka
        >>> goka.visitor("reset", lambda ctx, metadata: ctx.delete()).topic
        'reset'

    Source: Goka, `goka.Visitor`.
    """
    return Edge(VISITOR, name, None, callback, called_from())


def group_table(group: str, suffix: str = TABLE_SUFFIX) -> str:
    """Return the name of the topic of a group's table.

    Args:
        group: Name of the group.
        suffix: The group's `table_suffix`.

    Example:
        >>> from wallaroo import goka
        >>> goka.group_table("counts")
        'counts-table'

    Source: Goka, `goka.GroupTable`.
    """
    return group + suffix
