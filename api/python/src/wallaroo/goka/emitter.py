"""Writes keyed messages to a topic, from any program."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from wallaroo.goka.client import client_settings, kafka_client
from wallaroo.goka.error import CodecError, EmitterClosedError
from wallaroo.goka.graph import Headers
from wallaroo.goka.partitioner import FNV1A
from wallaroo.message.kafka_record import MAX_RECORD_BYTES

FINISH_S, POLL_S = 60.0, 0.05


@dataclass(frozen=True, slots=True)
class Delivered:
    """Where Kafka has put a record.

    Attributes:
        partition: Its partition.
        offset: Its offset.

    Example:
        >>> Delivered(3, 17).offset
        17
    """

    partition: int
    offset: int


class Emitter:
    """Writes messages to a topic, each into the partition of its key. It needs no application; threads may share it.

    Args:
        brokers: HOST:PORT of some brokers.
        topic: Name of the topic, which must exist unless the brokers create what is written to.
        codec: Writes the messages, e.g. `String()`.
        partitioner: "fnv1a", as Goka and groups write; "murmur2", as Kafka's Java clients.
        default_headers: Of every message.
        options: Settings of Kafka's client; "message.max.bytes" is how many bytes a record may have, 1048588 by
            default.

    Raises:
        DiagnosticError: R728, confluent_kafka is not installed.

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
        """Write a message.

        Args:
            key: Its key.
            message: What the codec writes; None: a record without a value, which deletes the key from a table.
            headers: Of the record.

        Returns:
            A promise: its result is there when Kafka has the record. An error of Kafka's is its exception, as is
            `EmitterClosedError` after `finish`.

        Raises:
            CodecError: The codec cannot write the message.
        """
        try:
            value = None if message is None else self._codec.encode(message)
        except Exception as error:
            msg = f"Error encoding value for key {key} in topic {self.topic}: {error}"
            raise CodecError(msg) from error
        promise: Future[Delivered] = Future()
        with self._lock:
            if self._is_closed.is_set():
                promise.set_exception(EmitterClosedError())
                return promise
            pairs = list({**self._default_headers, **(headers or {})}.items())
            self._produce(key.encode("utf-8", "surrogateescape"), value, pairs, promise)
        return promise

    def emit_sync(self, key: str, message: Any, *, headers: Headers | None = None) -> Delivered:
        """Write a message, and wait until Kafka has it; arguments as for `emit`.

        Raises:
            CodecError: The codec cannot write the message.
            EmitterClosedError: The emitter has finished.
            Exception: An error of Kafka's.
        """
        return self.emit(key, message, headers=headers).result()

    def finish(self, timeout_s: float = FINISH_S) -> None:
        """Take no more messages, and wait until Kafka has all that were emitted. A second call does nothing.

        Args:
            timeout_s: How long at most; promises that are open then stay so.
        """
        with self._lock:
            if self._is_closed.is_set():
                return
            self._is_closed.set()
        self._producer.flush(timeout_s)
        self._poller.join()

    def __enter__(self) -> "Emitter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    def _produce(self, key: bytes, value: bytes | None, headers: list[Any], promise: "Future[Delivered]") -> None:
        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                promise.set_exception(self._client.KafkaException(error))
            else:
                promise.set_result(Delivered(message.partition(), message.offset()))

        while True:
            try:
                self._producer.produce(self.topic, value, key, headers=headers, on_delivery=delivered)
                return
            except BufferError:  # as many messages as fit are waiting for Kafka
                self._producer.poll(POLL_S)
            except self._client.KafkaException as error:  # the client does not take it, such as one that is too large
                promise.set_exception(error)
                return

    def _poll(self) -> None:
        while not self._is_closed.is_set():
            self._producer.poll(POLL_S)
