"""One connector at the other end of a connection: the frames it may send, and those still to be sent to it."""

import contextlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wallaroo_runtime.gateway.connection import Connection

MOST_UNSENT_BYTES = 256 * 1024
MOST_DELIVERIES = 1024
LINGER_S = 5.0


@dataclass(slots=True)
class Delivery:
    """Messages that are journaled and not yet acknowledged.

    Attributes:
        taken: Value of `Intake.taken` after them.
        points: Stream to the id of its last one.
        offset: Offset of the journal after them; None: they are not written yet.
    """

    taken: int
    points: dict[int, int]
    offset: int | None = None


@dataclass(slots=True, eq=False)
class ConnectorSession:
    """The gateway's record of one connector.

    Attributes:
        name: Program and instance, once it was welcomed.
        credits: How many messages it may send.
        asked: Streams that open when everything is safe up to a value of `Intake.taken`.
        deliveries: In the order of the journal.
        greets_by: When it must have said HELLO.
        leaves_at: When waiting for a refused one ends.
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
        """Whether the connector does not read the frames sent to it."""
        return bool(self._unsent)

    @property
    def is_deaf(self) -> bool:
        """Whether more than is reasonable waits for the connector."""
        return len(self._unsent) > MOST_UNSENT_BYTES

    def send(self, frame: bytes) -> None:
        """Send a frame, now or when the connector has taken the earlier ones."""
        self._unsent += frame
        self.flush()

    def flush(self) -> None:
        """Send as much as the connection takes."""
        # A broken connection says so where it is read.
        with contextlib.suppress(OSError):
            while self._unsent and (sent := self.connection.socket.send(self._unsent)):
                del self._unsent[:sent]

    def deliver(self, taken: int, points: Mapping[int, int]) -> None:
        """Acknowledge points of streams when everything up to a value of `Intake.taken` is processed."""
        if len(self.deliveries) >= MOST_DELIVERIES:
            last = self.deliveries[-1]
            last.taken, last.offset = taken, None
            last.points.update(points)
        else:
            self.deliveries.append(Delivery(taken, dict(points)))

    def processed(self, end_messages: int, end_offset: int, committed: int) -> dict[int, int]:
        """Return the points of streams that are processed now, each once."""
        for delivery in self._written(end_messages):
            delivery.offset = end_offset
        points: dict[int, int] = {}
        while self.deliveries and (offset := self.deliveries[0].offset) is not None and offset <= committed:
            points.update(self.deliveries.popleft().points)
        return points

    def _written(self, end_messages: int) -> Iterable[Delivery]:
        """Yield, from the last one on, the deliveries that were written since the last look."""
        for delivery in reversed(self.deliveries):
            if delivery.offset is not None:
                return
            if delivery.taken <= end_messages:
                yield delivery
