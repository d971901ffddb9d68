"""The messages that a test sends to an application in memory, and gets from it; also exported by `wallaroo.testing`."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """A message with the properties that its value does not hold.

    Attributes:
        value: A payload as bytes, or an object of the program's.
        key: For sources whose messages have keys: Kafka, connectors, Spark.
        time_ms: When it was made, in milliseconds since 1970; None: as late as the application's clock says.

    Example:
        >>> Message(b"42", key=b"AAPL").key
        b'AAPL'
    """

    value: Any
    key: bytes = b""
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A message at a sink of Kafka or Spark: the result of its encoder.

    Attributes:
        value: Its bytes; None: there are none.
        key: Its key; None: it has none.
        partition: The partition that the encoder chose; None: it chose none.

    Example:
        >>> Record(b"42", key=b"AAPL").partition is None
        True
    """

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message on which user code failed, and why.

    Attributes:
        step: Name of the source, step or sink.
        code: Of the failure, as in the runtime's messages.
        error: What it says, on one line.
        message: Input of the step: of a source the payload, else the message; of other languages its bytes.
        key: The message's key, at steps with state; else None.
        source: Name of the source that the message came from.
        sequence: Position of that source's message among all that were sent, from 0.
        traceback: Of user code.

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
