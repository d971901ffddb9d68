"""Joins: the state of each key has the key's records of joined tables, and `ctx.join` returns their values."""

from wallaroo.goka.context import Context, refuse_promise
from wallaroo.goka.graph import GroupGraph
from wallaroo.goka.state import GroupState
from wallaroo.goka.update import Storage, Update, default_update
from wallaroo.message.kafka_record import KafkaRecord


class JoinedRecord(KafkaRecord):
    """A record of a joined table. Its topic may be an input of the group, too."""

    __slots__ = ()


class JoinDecoder:
    """Converts the records of a joined table to `JoinedRecord`, to distinguish them from records of inputs."""

    def decode(self, record: KafkaRecord) -> JoinedRecord:
        """Return the record as a `JoinedRecord`."""
        return JoinedRecord(
            record.topic,
            record.key,
            record.value,
            record.headers,
            record.timestamp_ms,
            record.partition,
            record.offset,
        )


def join(graph: GroupGraph, record: KafkaRecord, state: GroupState) -> bool:
    """Update the state of a key with a record of a joined table. Return whether the state has changed."""
    context = Context(graph, record)
    before = state.joined.get(record.topic)
    values = {} if before is None else {context.key: before}
    update = Update(record.topic, context.partition, context.offset, context.headers, context.timestamp)
    apply = graph.update_callback or default_update
    refuse_promise(context, apply(update, Storage(values, context.key), context.key, record.value), "the update")
    after = values.get(context.key)
    if after is None:
        state.joined.pop(record.topic, None)
    else:
        state.joined[record.topic] = after
    return after != before
