"""Writes messages with keys to a topic, from any program."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from wallaroo.goka.client import client_settings, kafka_client
from wallaroo.goka.error import CodecError, EmitterClosedError
from wallaroo.goka.graph import Headers
from wallaroo.goka.partitioner import FNV1A
from wallaroo.message.kafka_record import MAX_RECORD_BYTES

FINISH_S, POLL_S = 60.0, 0.05


@dataclass(frozen=True, slots=True)
class Delivered:
    """The position of a record that Kafka has stored.

    Attributes:
        partition: Partition of the record.
        offset: Offset of the record.

    Example:
        >>> Delivered(3, 17).offset
        17
    """

    partition: int
    offset: int


class Emitter:
    """Writes messages to a topic, each into the partition of its key, from any program. Threads may share an emitter.

    Args:
        brokers: HOST:PORT of some brokers.
        topic: Name of the topic. It must exist, unless the brokers create topics automatically.
        codec: Codec that encodes the messages, e.g. `String()`.
        partitioner: "fnv1a" as Goka and groups, "murmur2" as Kafka's Java clients.
        default_headers: Headers of every message.
        options: Settings of Kafka's client. "message.max.bytes" is the largest size of a record, 1048588 by default.

    Raises:
        DiagnosticError: R728 if confluent_kafka is not installed.

    Example:
        >>> from wallaroo import goka
        >>> with goka.Emitter(["127.0.0.1:9092"], "user-clicks", goka.Int64()) as emitter:
        ...     promise = emitter.emit("Ann", "x")
        Traceback (most recent call last):
        wallaroo.goka.error.CodecError: Error encoding value for key Ann in topic user-clicks: \
Int64: value to encode is not of type int64

    Source: Goka, `goka.NewEmitter`.
    """

    def __init__(
        self,
        brokers: Sequence[str],
        topic: str,
        codec: Any,
        *,
        partitioner: str = FNV1A,
        default_headers: Headers | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic, self._codec, self._default_headers = topic, codec, dict(default_headers or {})
        self._client = kafka_client("goka.Emitter")
        defaults = {"client.id": f"goka-emitter-{topic}", "partitioner": partitioner, "linger.ms": 5}
        defaults["message.max.bytes"] = MAX_RECORD_BYTES
        self._producer = self._client.Producer(client_settings(brokers, defaults, options))
        self._lock, self._is_closed = threading.Lock(), threading.Event()
        self._poller = threading.Thread(target=self._poll, name=f"emitter of {topic}", daemon=True)
        self._poller.start()

    def emit(self, key: str, message: Any, *, headers: Headers | None = None) -> "Future[Delivered]":
        """Write a message to the topic. The returned future is done when Kafka has stored it.

        Args:
            key: Key of the message.
            message: A value for the codec. None writes a record without a value, which deletes the key from a table.
            headers: Headers of the record, in addition to `default_headers`.

        Returns:
            A future that has a result as soon as Kafka has stored the record. If Kafka reports an error, the future has
            an exception with this error. After `finish` the exception is `EmitterClosedError`.

        Raises:
            CodecError: The codec cannot write the message.
        """
        try:
            value = None if message is None else self._codec.encode(message)
        except Exception as error:
            msg = f"Error encoding value for key {key} in topic {self.topic}: {error}"
            raise CodecError(msg) from error
        promise: Future[Delivered] = Future()
        promise.set_running_or_notify_cancel()  # it cannot be canceled, which would fail the poller
        pairs = list({**self._default_headers, **(headers or {})}.items())
        while not self._produce(key.encode("utf-8", "surrogateescape"), value, pairs, promise):
            self._producer.poll(POLL_S)  # without the lock: it calls back the program, and `finish` needs the lock
        return promise

    def emit_sync(self, key: str, message: Any, *, headers: Headers | None = None) -> Delivered:
        """Write a message, and wait until Kafka has stored it; arguments as for `emit`.

        Raises:
            CodecError: The codec cannot write the message.
            EmitterClosedError: The emitter has finished.
            Exception: Kafka reports an error.
        """
        return self.emit(key, message, headers=headers).result()

    def finish(self, timeout_s: float = FINISH_S) -> None:
        """Refuse further messages, and wait until Kafka has stored all emitted ones. A second call does nothing.

        Args:
            timeout_s: Longest wait in seconds. Futures that have no result after this time may never get one.
        """
        with self._lock:
            if self._is_closed.is_set():
                return
            self._is_closed.set()
        self._producer.flush(timeout_s)
        self._poller.join()

    def __enter__(self) -> "Emitter":
        return self

    def __exit__(self, *error: object) -> None:
        self.finish()

    def _produce(self, key: bytes, value: bytes | None, headers: list[Any], promise: "Future[Delivered]") -> bool:
        """Give a message to the client; returns False if the queue of messages that wait for Kafka is full."""

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                promise.set_exception(self._client.KafkaException(error))
            else:
                promise.set_result(Delivered(message.partition(), message.offset()))

        with self._lock:
            if self._is_closed.is_set():
                promise.set_exception(EmitterClosedError())
                return True
            try:
                self._producer.produce(self.topic, value, key, headers=headers, on_delivery=delivered)
            except BufferError:
                return False
            except self._client.KafkaException as error:  # the client refuses the message, e.g. because of its size
                promise.set_exception(error)
        return True

    def _poll(self) -> None:
        while not self._is_closed.is_set():
            self._producer.poll(POLL_S)
