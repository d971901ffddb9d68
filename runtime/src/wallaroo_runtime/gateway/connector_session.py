"""The state of a connection to a connector (a program that feeds a source): its streams and unsent frames."""

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from wallaroo.experimental.protocol import EOS_MESSAGE, HELLO, MESSAGE, NOTIFY, ProtocolError, ReceivedFrame, read
from wallaroo_runtime.gateway.connection import Connection

CONTROL_BYTES = 64 * 1024
LENGTH_BYTES = 4
MOST_UNSENT_BYTES = 256 * 1024
MOST_DELIVERIES = 1024
LINGER_S = 5.0


@dataclass(slots=True)
class Delivery:
    """Messages of a connector that the gateway has taken and not yet acknowledged.

    Attributes:
        taken: Value of `Intake.taken` after these messages.
        points: Id of the last of these messages, by stream.
        offset: Offset of the journal after these messages; None until they are written.
    """

    taken: int
    points: dict[int, int]
    offset: int | None = None


@dataclass(slots=True, eq=False)
class ConnectorSession:
    """The state of one connector's connection, as the gateway keeps it.

    Attributes:
        name: Program and instance; None until HELLO is accepted.
        credits: Number of messages that the connector may still send.
        asked: Requested streams, each with a value of `Intake.taken`. When all messages up to this value are safe, the
            stream opens.
        deliveries: Messages to acknowledge, in the order of the journal.
        greets_by: Time by which the connector must have sent HELLO.
        leaves_at: Time at which a refused connector is disconnected; None if it is not refused.
    """

    connection: Connection
    greets_by: float
    name: tuple[str, str] | None = None
    credits: int = 0
    streams: set[int] = field(default_factory=set)
    asked: deque[tuple[int, int]] = field(default_factory=deque)
    deliveries: deque[Delivery] = field(default_factory=deque)
    leaves_at: float | None = None
    _unsent: bytearray = field(default_factory=bytearray)

    @property
    def has_unsent(self) -> bool:
        """True if frames are unsent because the connector does not read."""
        return bool(self._unsent)

    @property
    def is_deaf(self) -> bool:
        """True if the connector does not read: more than `MOST_UNSENT_BYTES` bytes are unsent."""
        return len(self._unsent) > MOST_UNSENT_BYTES

    def send(self, frame: bytes) -> None:
        """Send a frame, now or after the earlier frames that still wait."""
        self._unsent += frame
        self.flush()

    def flush(self) -> None:
        """Send waiting frames, as much as the connection takes now."""
        # A broken connection is noticed where it is read.
        with contextlib.suppress(OSError):
            while self._unsent and (sent := self.connection.socket.send(self._unsent)):
                del self._unsent[:sent]

    def deliver(self, taken: int, points: Mapping[int, int]) -> None:
        """Note the last id of each stream, to acknowledge it when all messages up to number `taken` are processed."""
        if len(self.deliveries) >= MOST_DELIVERIES:
            last = self.deliveries[-1]
            last.taken, last.offset = taken, None
            last.points.update(points)
        else:
            self.deliveries.append(Delivery(taken, dict(points)))

    def processed(self, end_messages: int, end_offset: int, committed: int) -> dict[int, int]:
        """Return, for each stream with newly processed messages, the id of the last one, to acknowledge it now."""
        for delivery in reversed(self.deliveries):
            if delivery.offset is not None:
                break  # earlier deliveries were written before
            if delivery.taken <= end_messages:
                delivery.offset = end_offset
        points: dict[int, int] = {}
        while self.deliveries and (offset := self.deliveries[0].offset) is not None and offset <= committed:
            points.update(self.deliveries.popleft().points)
        return points


def read_frames(data: bytes) -> Iterator[ReceivedFrame]:
    """Yield the frames in `data`, which holds whole frames of a connector only.

    Raises:
        ProtocolError: A frame breaks the protocol; the frames before it have been yielded.
    """
    at = 0
    while at < len(data):
        begin = at + LENGTH_BYTES
        at = begin + int.from_bytes(data[at:begin], "big")
        tag = data[begin] if begin < at else MESSAGE
        if tag not in (HELLO, NOTIFY, MESSAGE, EOS_MESSAGE):
            reason = f"no connector sends a frame of tag {tag}"
            raise ProtocolError(reason)
        if tag != MESSAGE and at - begin - 1 > CONTROL_BYTES:
            reason = f"a frame of tag {tag} has {at - begin - 1} bytes; at most {CONTROL_BYTES} are allowed"
            raise ProtocolError(reason)
        yield read(data, begin, at)
