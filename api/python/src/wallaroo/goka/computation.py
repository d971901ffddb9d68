"""The computation that a worker runs for a group: it processes each record with the state of the record's key."""

import time
from typing import Any

from wallaroo.diagnostic import diagnostic
from wallaroo.goka.context import Context, refuse_promise, shown
from wallaroo.goka.edge import INPUT, LOOP, Edge
from wallaroo.goka.error import CodecError
from wallaroo.goka.graph import DECODE, IGNORE, GroupGraph
from wallaroo.goka.join import JoinedRecord, join
from wallaroo.goka.lookup import Lookups
from wallaroo.goka.state import GroupState
from wallaroo.message import deferred_commit
from wallaroo.message.kafka_record import MAX_RECORD_BYTES, KafkaRecord
from wallaroo.message.output import Output, is_promise


class NothingEncoder:
    """The encoder of a group without outputs. It is never called, because there are no results."""

    def encode(self, record: object) -> None:
        """Return None."""


class GroupComputation:
    """Runs the callbacks of a group as the step of an application.

    Args:
        graph: The group.
        lookups: The tables for `ctx.lookup`; None if the group has no lookups.
        max_record_bytes: Largest size of a record that a callback writes.
    """

    def __init__(self, graph: GroupGraph, lookups: Lookups | None, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        self._graph, self._lookups, self._max_record_bytes = graph, lookups, max_record_bytes
        self._edges: dict[str, Edge] = {edge.topic: edge for edge in graph.all_edges if edge.kind in (INPUT, LOOP)}
        self._visitors = {edge.topic: edge for edge in graph.visitors}

    def with_state(self, record: KafkaRecord, state: GroupState) -> tuple[list[Output], bool]:
        """Process a record with the state of its key. Return the written records, and whether the state has changed."""
        if isinstance(record, JoinedRecord):
            return [], join(self._graph, record, state)
        context = self._run(record, state)
        return ([], False) if context is None else (context.outputs, context.is_changed)

    def shown(self, state: GroupState) -> dict[str, Any]:
        """Return a state in readable form: the values that the edges' codecs decode, or bytes if a codec fails."""
        table = self._graph.group_table
        joined = {edge.topic: edge.codec for edge in self._graph.joint_tables}
        return {
            "value": None if table is None else _decoded(table.codec, state.value),
            "joined": {topic: _decoded(joined.get(topic), data) for topic, data in state.joined.items()},
        }

    def without_state(self, record: KafkaRecord) -> list[Output]:
        """Process a record of a group without state, and return the written records."""
        context = self._run(record, None)
        return [] if context is None else context.outputs

    def visit(self, name: str, metadata: bytes, key: str | bytes, state: GroupState) -> tuple[list[Output], bool]:
        """Run a visitor for a key, unless the key has no value, and return the results as `with_state` does.

        The visitor without a name deletes the value, because its time to live is over.
        """
        if state.value is None:
            return [], False
        raw = key if isinstance(key, bytes) else key.encode()
        record = KafkaRecord(name, raw, metadata, timestamp_ms=time.time_ns() // 1_000_000)
        if not name:
            ended = Context(self._graph, record, state, None, self._max_record_bytes)
            ended.delete()
            return ended.outputs, True
        context = self._call(self._visitors[name], record, metadata, state)
        return context.outputs, context.is_changed

    def _run(self, record: KafkaRecord, state: GroupState | None) -> Context | None:
        """Run the callback for a record, and return its context; None if the record has no value and is ignored."""
        edge = self._edges[record.topic]
        if record.value is None and self._graph.nil_handling == IGNORE:
            return None
        return self._call(edge, record, self._message(edge, record), state)

    def _call(self, edge: Edge, record: KafkaRecord, message: Any, state: GroupState | None) -> Context:
        """Run the callback of an edge, and return its context."""
        if self._lookups is not None:
            self._lookups.start()
        graph = self._graph
        context = Context(graph, record, state, self._lookups, self._max_record_bytes)
        wrapped: Any = context if graph.context_wrapper is None else graph.context_wrapper(context)
        assert edge.callback is not None
        begun = deferred_commit.count()
        try:
            refuse_promise(context, edge.callback(wrapped, message), "the callback")
            context.finish()
        except BaseException:
            context.close()
            deferred_commit.forget(begun)
            raise
        return context

    def _message(self, edge: Edge, record: KafkaRecord) -> Any:
        if record.value is None and self._graph.nil_handling != DECODE:
            return None
        try:
            message = edge.codec.decode(record.value)
            if is_promise(message):
                msg = f"decode returned {diagnostic.shown(message)}"
                raise TypeError(msg)
            return message
        except Exception as error:
            place = f"{record.topic}/{record.partition or 0}"
            msg = f"error decoding message for key {shown(record.key or b'')} from {place}: {error}"
            raise CodecError(msg) from error


def _decoded(codec: Any, data: bytes | None) -> Any:
    try:
        return data if codec is None or data is None else codec.decode(data)
    except Exception:
        return data  # probably written by another version of the program
