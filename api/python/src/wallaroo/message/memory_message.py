"""Messages that a test sends to an application in memory, and receives from it; `wallaroo.testing` exports them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """A message that a test sends with a key or a time, which are not part of its value.

    Attributes:
        value: A payload as bytes, or an object of the program.
        key: Key, for sources whose messages have keys: Kafka, connectors, Spark.
        time_ms: Time of the message in milliseconds since 1970; None takes the present time of the application's clock.

    Example:
        >>> Message(b"42", key=b"AAPL").key
        b'AAPL'
    """

    value: Any
    key: bytes = b""
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A message that a sink of Kafka or Spark has received: the result of the sink's encoder.

    Attributes:
        value: Bytes of the message; None for a record without a value.
        key: Key of the record; None for a record without a key.
        partition: Partition that the encoder chose; None if it left the choice to the sink.

    Example:
        >>> Record(b"42", key=b"AAPL").partition is None
        True
    """

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message on which user code failed, and the reason.

    Attributes:
        step: Name of the source, step or sink.
        code: Error code of the failure.
        error: Text of the error, on one line.
        message: Input of the step: a source's payload, a message, or the bytes of a message of another language.
        key: Key of the message at a step with state, else None.
        source: Name of the source that the message came from.
        sequence: Number of the source's message, counted from 0 over all messages that were sent.
        traceback: Traceback of the user code.

    Example:
        >>> DeadLetter("halve", "C501", "TypeError: no number", "x", None, "in", 0, "").step
        'halve'
    """

    step: str
    code: str
    error: str
    message: Any
    key: str | bytes | None
    source: str
    sequence: int
    traceback: str
