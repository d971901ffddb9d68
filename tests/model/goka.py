"""Goka's semantics in one page: groups that read records one after the other. It shares no code with `wallaroo.goka`.

Records are written in rounds: what a round's callbacks write is read in the next one. In a round, a group applies the
records of its joined tables first, then runs its callbacks on those of its inputs, in order.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CALLBACK, CODEC = "CallbackError", "CodecError"
Headers = tuple[tuple[str, bytes], ...]


def shown(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Record:
    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass
class Group:
    """What a group reads and writes; codecs by topic."""

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    joins: Sequence[str] = ()
    lookups: Sequence[str] = ()
    has_table: bool = True
    has_loop: bool = False
    nil: str = "ignore"
    default_headers: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def table(self) -> str:
        return f"{self.name}-table"

    @property
    def loop(self) -> str:
        return f"{self.name}-loop"


class Failure(Exception):
    """A failed message, as a dead letter shows it: with single blanks."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(" ".join(f"{kind}: {text}".split())[:400])


class Context:
    def __init__(self, world: "World", group: Group, record: Record, offset: int) -> None:
        self.world, self.group_graph, self.record, self.offset = world, group, record, offset
        self.topic, self.raw_key = record.topic, record.key or b""
        self.key = self.raw_key.decode("utf-8", "surrogateescape")
        self.headers = dict(record.headers)
        self.data = world.values[group.name].get(self.raw_key)
        self.written: list[Record] = []

    def value(self) -> Any:
        self.needs_table()
        return None if self.data is None else self.read(self.group_graph.table, self.data, "error decoding value")

    def set_value(self, value: Any) -> None:
        self.needs_table()
        if value is None:
            self.fail("cannot set nil as value")
        self.data = self.world.codecs[self.group_graph.table].encode(value)
        self.written.append(Record(self.group_graph.table, self.raw_key, self.data))

    def delete(self) -> None:
        self.needs_table()
        self.data = None
        self.written.append(Record(self.group_graph.table, self.raw_key, None))

    def join(self, table: str) -> Any:
        if table not in self.group_graph.joins:
            self.fail(f"table {table} not subscribed")
        data = self.world.joined[self.group_graph.name, table].get(self.raw_key)
        what = f"error decoding value key {shown(self.raw_key)} of table {table}"
        return None if data is None else self.read(table, data, what)

    def lookup(self, table: str, key: str) -> Any:
        if table not in self.group_graph.lookups:
            self.fail(f"topic {table} not subscribed")
        raw_key = key.encode("utf-8", "surrogateescape")
        data = self.world.last(table).get(raw_key)
        what = f"error getting key {shown(raw_key)} of table {table}"
        return None if data is None else self.read(table, data, what)

    def emit(self, topic: str, key: str, value: Any, *, headers: Mapping[str, bytes] | None = None) -> None:
        if topic not in self.group_graph.outputs:
            hint = "Did you specify goka.Output(..) when defining the processor?"
            self.fail(f"topic {topic} is not configured for output. {hint}")
        self.write(topic, key, None if value is None else self.world.codecs[topic].encode(value), headers)

    def loopback(self, key: str, value: Any, *, headers: Mapping[str, bytes] | None = None) -> None:
        if not self.group_graph.has_loop:
            self.fail("no loop topic configured")
        self.write(self.group_graph.loop, key, self.world.codecs[self.group_graph.loop].encode(value), headers)

    def fail(self, text: str) -> None:
        raise Failure(CALLBACK, text)

    def needs_table(self) -> None:
        if not self.group_graph.has_table:
            self.fail("Cannot access state in stateless processor")

    def read(self, topic: str, data: bytes, what: str) -> Any:
        try:
            return self.world.codecs[topic].decode(data)
        except ValueError as error:
            raise Failure(CODEC, f"{what}: {error}") from error

    def write(self, topic: str, key: str, value: bytes | None, headers: Mapping[str, bytes] | None) -> None:
        pairs = {**self.group_graph.default_headers, **(headers or {})}
        self.written.append(Record(topic, key.encode("utf-8", "surrogateescape"), value, tuple(pairs.items())))


class World:
    """Groups, their tables and all topics.

    Attributes:
        topics: All records.
        values: The tables of the groups, by key.
        joined: The joined tables as far as groups have applied them, by group and topic.
        letters: Group, key and failure of each message that failed.
    """

    def __init__(
        self, groups: Sequence[Group], codecs: Mapping[str, Any], callback: Callable[[Any, Any], None]
    ) -> None:
        self.groups, self.codecs, self.callback = groups, codecs, callback
        self.topics: dict[str, list[Record]] = defaultdict(list)
        self.values: dict[str, dict[bytes, bytes]] = defaultdict(dict)
        self.joined: dict[tuple[str, str], dict[bytes, bytes]] = defaultdict(dict)
        self.letters: list[tuple[str, bytes, str]] = []

    def last(self, topic: str) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for record in self.topics[topic]:
            self.put(found, record.key or b"", record.value)
        return found

    def produce(self, records: Sequence[Record]) -> None:
        while records:
            offsets = []
            for record in records:
                offsets.append(len(self.topics[record.topic]))
                self.topics[record.topic].append(record)
            pairs = list(zip(records, offsets, strict=True))
            records = [written for group in self.groups for written in self.round(group, pairs)]

    def visit(self, name: str, group: Group, metadata: Any, keys: Callable[[Iterable[bytes]], list[bytes]]) -> None:
        """Run a visitor; `keys` says in which order: Goka names none."""
        written: list[Record] = []
        for key in keys(self.values[group.name]):
            self.run(group, Record(name, key, b""), 0, metadata, written)
        self.produce(self.by_sink(group, written))

    def round(self, group: Group, pairs: Sequence[tuple[Record, int]]) -> list[Record]:
        written: list[Record] = []
        for record, _ in pairs:
            if record.topic in group.joins:
                self.put(self.joined[group.name, record.topic], record.key or b"", record.value)
        for record, offset in pairs:
            if record.topic in group.inputs or (group.has_loop and record.topic == group.loop):
                self.message(group, record, offset, written)
        return self.by_sink(group, written)

    def message(self, group: Group, record: Record, offset: int, written: list[Record]) -> None:
        if record.value is None and group.nil != "decode":
            if group.nil == "process":
                self.run(group, record, offset, None, written)
            return
        try:
            message = self.codecs[record.topic].decode(record.value)
        except ValueError as error:
            what = f"error decoding message for key {shown(record.key or b'')} from {record.topic}/0"
            failure = Failure(CODEC, f"{what}: {error}")
            self.letters.append((group.name, record.key or b"", str(failure)))
        else:
            self.run(group, record, offset, message, written)

    def run(self, group: Group, record: Record, offset: int, message: Any, written: list[Record]) -> None:
        context = Context(self, group, record, offset)
        try:
            self.callback(context, message)
        except Failure as failure:
            self.letters.append((group.name, record.key or b"", str(failure)))
        else:
            self.put(self.values[group.name], context.raw_key, context.data)
            written += context.written

    @staticmethod
    def by_sink(group: Group, written: list[Record]) -> list[Record]:
        """Return records in the order of the group's sinks."""
        return [each for topic in (*group.outputs, group.table, group.loop) for each in written if each.topic == topic]

    @staticmethod
    def put(table: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
