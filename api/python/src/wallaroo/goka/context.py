"""The context of a callback: data of its message, the value of the key, and methods to write records."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from wallaroo.diagnostic import diagnostic
from wallaroo.goka.error import CallbackError, CodecError
from wallaroo.goka.graph import GroupGraph, Headers
from wallaroo.goka.state import GroupState
from wallaroo.goka.update import time_in_utc
from wallaroo.message import deferred_commit
from wallaroo.message.kafka_record import MAX_RECORD_BYTES, KafkaRecord, too_large
from wallaroo.message.output import Output, is_promise

if TYPE_CHECKING:
    from wallaroo.goka.lookup import Lookups

_TOO_LARGE = (
    "the record of key {key} for topic {topic} has {size} bytes; at most {limit} are possible; split its value, "
    "or raise kafka.max.request.size in the application's options and max.message.bytes of the topic"
)


def shown(key: str | bytes) -> str:
    """Return a key as text for an error message. Bytes that are not UTF-8 are shown in hexadecimal."""
    data = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
    return data.decode("utf-8", "backslashreplace")


class Context:
    """The argument `ctx` of callbacks: topic, key and headers of the message, the key's value, and methods to write.

    The context is valid until the callback returns, and only in its thread. A method that is used in a wrong way, and
    `fail`, raise an exception that ends the callback. In this case the message fails and all effects of the callback
    are dropped, even if the callback catches the exception.

    Args:
        graph: The group.
        record: The record of the message.
        state: State of the message's key; None if the group has no state.
        lookups: The tables for `lookup`.
        max_record_bytes: Largest size of a written record. A larger record fails the message, because Kafka would
            refuse the record.

    Attributes:
        outputs: The records that the callback has written.
        is_changed: Whether the value of the key has been set or deleted.

    Example:
        >>> from wallaroo import KafkaRecord, goka
        >>> edges = goka.input("clicks", goka.String(), lambda ctx, message: None), goka.persist(goka.Int64())
        >>> record = KafkaRecord("clicks", b"Ann", b"x")
        >>> ctx = goka.Context(goka.define_group("counts", *edges), record, goka.GroupState())
        >>> ctx.set_value(1)
        >>> ctx.key, ctx.value()
        ('Ann', 1)

    Source: Goka, `goka.Context`.
    """

    __slots__ = (
        *("_failure", "_graph", "_headers", "_is_over", "_lookups", "_max_record_bytes", "_record", "_state"),
        *("is_changed", "outputs"),
    )

    def __init__(
        self,
        graph: GroupGraph,
        record: KafkaRecord,
        state: GroupState | None = None,
        lookups: "Lookups | None" = None,
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self._graph, self._record, self._state, self._lookups = graph, record, state, lookups
        self._max_record_bytes = max_record_bytes
        self.outputs: list[Output] = []
        self._headers: dict[str, bytes | None] | None = None
        self._failure: CallbackError | None = None
        self._is_over = False
        self.is_changed = False

    @property
    def topic(self) -> str:
        """Topic of the message, or name of the visitor."""
        return self._record.topic

    @property
    def key(self) -> str:
        """Key of the message; empty if the message has no key."""
        return (self._record.key or b"").decode("utf-8", "surrogateescape")

    @property
    def partition(self) -> int:
        """Partition of the message."""
        return self._record.partition or 0

    @property
    def offset(self) -> int:
        """Offset of the message."""
        return self._record.offset

    @property
    def group(self) -> str:
        """Name of the group."""
        return self._graph.group

    @property
    def headers(self) -> dict[str, bytes | None]:
        """Headers of the message. If several headers have the same name, the last header counts."""
        if self._headers is None:
            self._headers = dict(self._record.headers)
        return self._headers

    @property
    def timestamp(self) -> datetime | None:
        """Time of the message in UTC; None if it has no time."""
        return time_in_utc(self._record.timestamp_ms)

    def value(self) -> Any:
        """Return the key's value in the group table, or None. Call `set_value` to store a changed value."""
        state = self._own_state()
        if state.value is None:
            return None
        table = self._graph.group_table
        assert table is not None
        return self._decoded(table.codec, state.value, "error decoding value")

    def set_value(self, value: Any, *, headers: Headers | None = None) -> None:
        """Set the value of the key in the group table.

        Args:
            value: A value for the table's codec. None fails the message; use `delete` instead.
            headers: Headers of the record in the table's topic.
        """
        state, table = self._own_state(), self._graph.group_table
        assert table is not None
        if value is None:
            self.fail("cannot set nil as value")
        data = self._encoded(table.codec, value, "error encoding value")
        state.value, self.is_changed = data, True
        self._write(table.topic, self._record.key or b"", data, headers or {})

    def delete(self, *, headers: Headers | None = None) -> None:
        """Delete the key from the group table.

        Args:
            headers: Headers of the record in the table's topic.
        """
        state, table = self._own_state(), self._graph.group_table
        assert table is not None
        state.value, self.is_changed = None, True
        self._write(table.topic, self._record.key or b"", None, headers or {})

    def join(self, table: str) -> Any:
        """Return the key's value in a joined table, or None if the table does not have the key."""
        joined = next((edge for edge in self._graph.joint_tables if edge.topic == table), None)
        if joined is None or self._state is None:
            self.fail(f"table {table} not subscribed")
        self._check_open()
        data = self._state.joined.get(table)
        what = f"error decoding value key {shown(self.key)} of table {table}"
        return None if data is None else self._decoded(joined.codec, data, what)

    def lookup(self, table: str, key: str) -> Any:
        """Return the value of any key in a lookup table, or None if the table does not have the key."""
        looked_up = next((edge for edge in self._graph.lookup_tables if edge.topic == table), None)
        if looked_up is None or self._lookups is None:
            self.fail(f"topic {table} not subscribed")
        data = self._lookups.get(table, key)
        what = f"error getting key {shown(key)} of table {table}"
        return None if data is None else self._decoded(looked_up.codec, data, what)

    def emit(self, topic: str, key: str, value: Any, *, headers: Headers | None = None) -> None:
        """Write a record to a topic that the group declares with `output`.

        Args:
            topic: Name of the topic.
            key: Any key.
            value: A value for the topic's codec; None writes a record without a value.
            headers: Headers of the record, in addition to the group's `default_headers`.
        """
        if topic == "":
            self.fail("cannot emit to empty topic")
        if topic == self._graph.loop_topic:
            self.fail("cannot emit to loop topic (use Loopback instead)")
        if topic == self._graph.table_topic:
            self.fail("cannot emit to table topic (use SetValue instead)")
        output = next((edge for edge in self._graph.output_streams if edge.topic == topic), None)
        if output is None:
            hint = "Did you specify goka.Output(..) when defining the processor?"
            self.fail(f"topic {topic} is not configured for output. {hint}")
        what = f"error encoding message for topic {topic}"
        data = None if value is None else self._encoded(output.codec, value, what)
        self._write(topic, self._key_bytes(key), data, {**self._graph.default_headers, **(headers or {})})

    def loopback(self, key: str, value: Any, *, headers: Headers | None = None) -> None:
        """Send a message to a key of this group, for the callback of `loop`.

        Args:
            key: Any key.
            value: A value for the loop's codec. None is passed to the codec, too.
            headers: As for `emit`.
        """
        loop = self._graph.loop_stream
        if loop is None:
            self.fail("no loop topic configured")
        raw_key = self._key_bytes(key)
        data = self._encoded(loop.codec, value, f"error encoding message for key {shown(raw_key)}")
        self._write(loop.topic, raw_key, data, {**self._graph.default_headers, **(headers or {})})

    def fail(self, error: str | BaseException) -> NoReturn:
        """End the callback: the message fails, and by default the application stops.

        Args:
            error: The reason.

        Raises:
            CallbackError: Always.
        """
        self._failure = CallbackError(str(error))
        raise self._failure from (error if isinstance(error, BaseException) else None)

    def defer_commit(self) -> Callable[..., None]:
        """Defer the commit of the message until the returned function is called, from any thread.

        Returns:
            `done(error=None)`, which must be called. If it is called with an error, the application stops and nothing
            is committed. The call must not depend on later messages, because the worker waits for it before it gets
            them.
        """
        self._check_open()
        return deferred_commit.begin(f"could not commit message with key '{shown(self.key)}'")

    def finish(self) -> None:
        """End the context after its callback has returned. Raise the error of `fail`, if the callback has caught it.

        Raises:
            CallbackError: The error of `fail`, if the callback caught it.
        """
        self.close()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Refuse further use of the context, because other messages may now change the key's state."""
        self._is_over = True

    def _check_open(self) -> None:
        if self._is_over:
            self.fail("the callback has returned; its context is no longer valid")

    def _own_state(self) -> GroupState:
        if self._state is None or self._graph.group_table is None:
            self.fail("Cannot access state in stateless processor")
        self._check_open()
        return self._state

    def _write(self, topic: str, key: bytes, value: bytes | None, headers: Headers) -> None:
        self._check_open()
        record = KafkaRecord(topic, key, value, tuple(headers.items()))
        if size := too_large(self._max_record_bytes, key, value, record.headers):
            self.fail(_TOO_LARGE.format(key=shown(key)[:80], topic=topic, size=size, limit=self._max_record_bytes))
        self.outputs.append(Output(topic, record))

    def _key_bytes(self, key: Any) -> bytes:
        if not isinstance(key, str):
            self.fail(f"key {key!r} is not a str")
        return key.encode("utf-8", "surrogateescape")

    def _encoded(self, codec: Any, value: Any, what: str) -> bytes:
        try:
            data = codec.encode(value)
        except Exception as error:
            self._broken(f"{what}: {error}", error)
        if not isinstance(data, bytes):
            self._broken(f"{what}: {type(codec).__name__}.encode returned {type(data).__name__}, not bytes", None)
        return data

    def _decoded(self, codec: Any, data: bytes, what: str) -> Any:
        try:
            return codec.decode(data)
        except Exception as error:
            self._broken(f"{what}: {error}", error)

    def _broken(self, text: str, error: Exception | None) -> NoReturn:
        self._failure = CodecError(text)
        raise self._failure from error


def refuse_promise(context: Context, result: object, what: str) -> None:
    """Fail the message if the user's function returned a promise, e.g. a coroutine, which nobody runs."""
    if result is not None and is_promise(result):
        context.fail(f"{what} returned {diagnostic.shown(result)}, which nobody runs; call `asyncio.run(...)` in it")
