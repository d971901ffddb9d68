"""Views: each follows a Kafka table, and serves the values of its keys to any program."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from wallaroo.goka.client import client_settings, kafka_client
from wallaroo.goka.error import ViewError
from wallaroo.goka.partitioner import FNV1A, partition_of
from wallaroo.goka.update import Storage, Update, UpdateCallback, default_update, time_in_utc

METADATA_S, POLL_S, MOST_RECORDS = 20.0, 0.1, 1000
NOT_FOUND = "requested topic was not found"
NOT_READY = "View is either not running, not correctly initialized or stopped again. It's not safe to retrieve values"


class ViewState(IntEnum):
    """The progress of a view while it reads its table. The slowest partition determines the progress.

    Example:
        >>> ViewState.RUNNING > ViewState.CATCH_UP
        True

    Source: Goka, `goka.ViewState`.
    """

    IDLE = 0
    INITIALIZING = 1
    CONNECTING = 2
    CATCH_UP = 3
    RUNNING = 4


class View:
    """Keeps the newest values of a table, or of any topic, in memory, while they change. Threads may share a view.

    Updates of a transaction are visible when it is committed. While no broker can be reached, the view serves the
    values that it has; it continues when the brokers are back.

    Args:
        brokers: HOST:PORT of some brokers.
        table: Name of the topic, e.g. `group_table("my-group")`.
        codec: Codec that decodes the values.
        callback: `f(update, storage, key, value)`, as for `define_group`; None stores each value unchanged.
        partitioner: Partitioner of the table, "fnv1a" or "murmur2".
        options: Settings of Kafka's client.

    Raises:
        DiagnosticError: R728 if confluent_kafka is not installed.

    Example:
        >>> from wallaroo import goka
        >>> view = goka.View(["127.0.0.1:9092"], goka.group_table("my-group"), goka.Int64())
        >>> view.state.name, view.recovered
        ('IDLE', False)

    Source: Goka, `goka.NewView`.
    """

    def __init__(
        self,
        brokers: Sequence[str],
        table: str,
        codec: Any,
        *,
        callback: UpdateCallback | None = None,
        partitioner: str = FNV1A,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic, self._codec, self._update = table, codec, callback or default_update
        self._brokers, self._partitioner, self._options = list(brokers), partitioner, dict(options or {})
        self._client = kafka_client("goka.View")
        self._values: list[dict[str, bytes]] = []
        self._states: list[ViewState] = []
        self._state, self._error = ViewState.IDLE, ""
        self._changed = threading.Condition()
        self._observers: list[Callable[[ViewState], object]] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Read the table to its end, and then follow its updates until `stop`.

        Raises:
            ViewError: The table cannot be read.
        """
        self._stopping.clear()
        self._run()

    def start(self) -> None:
        """Call `run` in a new thread until `stop`. Before `stop`, a further call does nothing, even after a failure."""
        if self._thread is None:
            self._error = ""
            self._stopping.clear()  # not in the thread, which may begin after `stop`
            self._thread = threading.Thread(target=self._run_in_thread, name=f"view of {self.topic}", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End `run`, and wait for the thread of `start`."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def get(self, key: str) -> Any:
        """Return a key's value, or None if the table does not have the key.

        Raises:
            ViewError: The view does not run, or its codec cannot read the value.
        """
        data = self._partition(key).get(key)
        try:
            return None if data is None else self._codec.decode(data)
        except Exception as error:
            msg = f"error decoding value (key {key}): {error}"
            raise ViewError(msg) from error

    def has(self, key: str) -> bool:
        """Return whether a key has a value.

        Raises:
            ViewError: The view does not run.
        """
        return key in self._partition(key)

    def iterate(self, start: str = "", limit: str | None = None) -> Iterator[tuple[str, Any]]:
        """Yield the present keys and values, sorted by key. Errors of the codec are passed on.

        Args:
            start: First key of the range. Without `limit` it is a prefix: all keys that begin with it are in the range.
            limit: The first key after the range; None if `start` is a prefix.

        Raises:
            ViewError: The view does not run.
        """
        self._check()
        with self._changed:
            pairs = [pair for values in self._values for pair in values.items() if _is_in(pair[0], start, limit)]
        for key, data in sorted(pairs):
            yield key, self._codec.decode(data)

    def evict(self, key: str) -> None:
        """Remove a key from the view until the key's next update.

        Raises:
            ViewError: The view does not run.
        """
        values = self._partition(key)
        with self._changed:
            values.pop(key, None)

    @property
    def recovered(self) -> bool:
        """Whether the table has been read to its end."""
        return self._state == ViewState.RUNNING

    @property
    def state(self) -> ViewState:
        """How far the view is in reading its table, from IDLE to RUNNING."""
        return self._state

    def wait_running(self, timeout_s: float | None = None) -> None:
        """Wait until the table has been read to its end.

        Args:
            timeout_s: Longest wait in seconds; None waits forever.

        Raises:
            ViewError: The view has failed, or the time is over.
        """
        with self._changed:
            is_there = self._changed.wait_for(lambda: self.recovered or bool(self._error), timeout_s)
        if self._error or not is_there:
            raise ViewError(self._error or f"the view of {self.topic} is {self.state.name} after {timeout_s} s")

    def observe(self, observer: Callable[[ViewState], object]) -> Callable[[], None]:
        """Call a function with each new state, in the view's thread.

        Args:
            observer: The function. It must not wait for the view.

        Returns:
            A function that ends the observation.
        """
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def __enter__(self) -> "View":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _run(self) -> None:
        self._move(ViewState.INITIALIZING)
        defaults = {
            "group.id": f"goka-view-{self.topic}", "client.id": f"goka-view-{self.topic}",
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "enable.partition.eof": True,
            "receive.message.max.bytes": (1 << 31) - 1,  # librdkafka's limit excludes records of 100 MB
        }  # fmt: skip
        consumer = self._client.Consumer(client_settings(self._brokers, defaults, self._options))
        try:
            self._follow(consumer)
        except self._client.KafkaException as error:
            raise self._failed(error.args[0]) from error
        finally:
            consumer.close()
            self._move(ViewState.IDLE)

    def _run_in_thread(self) -> None:
        try:
            self._run()
        except Exception as error:
            with self._changed:
                self._error = str(error)
                self._changed.notify_all()

    def _follow(self, consumer: Any) -> None:
        metadata = consumer.list_topics(timeout=METADATA_S).topics.get(self.topic)
        if metadata is None or not metadata.partitions:
            raise self._failed(NOT_FOUND)
        if sorted(metadata.partitions) != list(range(len(metadata.partitions))):
            msg = f"Partition numbers are not sequential for topic {self.topic}"
            raise ViewError(msg)
        self._values = [{} for _ in metadata.partitions]
        self._states = [ViewState.CONNECTING for _ in metadata.partitions]
        self._move(ViewState.CONNECTING)
        beginning = self._client.OFFSET_BEGINNING
        consumer.assign([self._client.TopicPartition(self.topic, each, beginning) for each in metadata.partitions])
        while not self._stopping.is_set():
            for record in consumer.consume(MOST_RECORDS, POLL_S):
                self._take(record)

    def _take(self, record: Any) -> None:
        error, at = record.error(), record.partition()
        if error is None:
            self._apply(record)
            self._advance(at, max(self._states[at], ViewState.CATCH_UP))
        elif error.code() == self._client.KafkaError._PARTITION_EOF:
            self._advance(at, ViewState.RUNNING)
        elif not error.retriable() and error.code() not in (
            self._client.KafkaError._TRANSPORT,
            self._client.KafkaError._ALL_BROKERS_DOWN,
        ):
            raise self._failed(error)

    def _apply(self, record: Any) -> None:
        key = (record.key() or b"").decode("utf-8", "surrogateescape")
        kind, at = record.timestamp()
        known = kind != self._client.TIMESTAMP_NOT_AVAILABLE
        update = Update(
            self.topic,
            record.partition(),
            record.offset(),
            dict(record.headers() or ()),
            time_in_utc(at) if known else None,
        )
        with self._changed:
            self._update(update, Storage(self._values[record.partition()]), key, record.value())

    def _advance(self, partition: int, state: ViewState) -> None:
        if self._states[partition] != state:
            self._states[partition] = state
            self._move(min(self._states))

    def _move(self, state: ViewState) -> None:
        with self._changed:
            if state == self._state:
                return
            self._state = state
            self._changed.notify_all()
        for observer in list(self._observers):
            observer(state)

    def _check(self) -> None:
        if self._state < ViewState.CONNECTING:
            raise ViewError(f"{NOT_READY}; {self._error}" if self._error else NOT_READY)

    def _partition(self, key: str) -> dict[str, bytes]:
        self._check()
        return self._values[partition_of(key, len(self._values), self._partitioner)]

    def _failed(self, reason: object) -> ViewError:
        text = reason.str() if hasattr(reason, "str") else reason
        return ViewError(f"Error getting partitions for topic {self.topic}: {text}")


def _is_in(key: str, start: str, limit: str | None) -> bool:
    return key.startswith(start) if not limit else start <= key < limit
