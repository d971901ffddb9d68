"""The messages of two-phase commit between an application and a sink: `topology-schema/SPECIFICATION.md`, section 7."""

import struct
from dataclasses import dataclass

from wallaroo.experimental import protocol
from wallaroo.experimental.protocol import Fields, ProtocolError, packed

CONTROL, OUTPUT = 0, 1  # numbers of the two streams
LIST_UNCOMMITTED, REPLY_UNCOMMITTED, PHASE_1, REPLY, PHASE_2 = range(201, 206)
_U32, _U64, _RANGE = struct.Struct(">I"), struct.Struct(">Q"), struct.Struct(">QQQ")


@dataclass(frozen=True, slots=True)
class Order:
    """A message of two-phase commit: a request of the application about a transaction, or the sink's reply.

    Attributes:
        tag: Kind of the message: `LIST_UNCOMMITTED` to `PHASE_2`.
        ids: Names of transactions: none in `LIST_UNCOMMITTED`, any number in `REPLY_UNCOMMITTED`, otherwise exactly
            one.
        ranges: For `PHASE_1`: streams, each with start and end offset of its part of the transaction.
        is_commit: For `REPLY` and `PHASE_2`: True for commit, False for abort.
        number: For `LIST_UNCOMMITTED` and its reply: matches the reply with the request.
    """

    tag: int
    ids: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int, int], ...] = ()
    is_commit: bool = False
    number: int = 0


def framed(order: Order) -> bytes:
    """Return the frame of the connector protocol that carries an order."""
    return protocol.message(CONTROL, 0, 0, b"", bytes((order.tag,)) + _fields(order))


def read(payload: bytes) -> Order:
    """Read an order from the payload of a message of stream 0. This stream has only orders, and no output.

    Raises:
        ProtocolError: The payload is not an order.
    """
    try:
        return _read(payload[0], Fields(payload, 1, len(payload)))
    except (struct.error, IndexError, UnicodeDecodeError) as err:
        msg = f"a message of stream 0 is no order: {err}"
        raise ProtocolError(msg) from err


def _fields(order: Order) -> bytes:
    if order.tag == LIST_UNCOMMITTED:
        return _U64.pack(order.number)
    if order.tag == REPLY_UNCOMMITTED:
        return _U64.pack(order.number) + _U32.pack(len(order.ids)) + b"".join(map(packed, order.ids))
    (name,) = order.ids
    if order.tag == PHASE_1:
        return packed(name) + _U32.pack(len(order.ranges)) + b"".join(_RANGE.pack(*each) for each in order.ranges)
    return packed(name) + bytes((order.is_commit,))


def _read(tag: int, fields: Fields) -> Order:
    if tag == LIST_UNCOMMITTED:
        return Order(tag, number=fields.numbers(_U64)[0])
    if tag == REPLY_UNCOMMITTED:
        (number,), (count,) = fields.numbers(_U64), fields.numbers(_U32)
        return Order(tag, tuple(fields.text() for _ in range(count)), number=number)
    ids = (fields.text(),)
    if tag == PHASE_1:
        (count,) = fields.numbers(_U32)
        ranges = tuple(_RANGE.unpack(fields.take(_RANGE.size)) for _ in range(count))
        return Order(tag, ids, ranges)
    if tag in (REPLY, PHASE_2):
        return Order(tag, ids, is_commit=fields.take(1) != b"\0")
    msg = f"a message of stream 0 has tag {tag}"
    raise ProtocolError(msg)
