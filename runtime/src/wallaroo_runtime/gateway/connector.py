"""Sources fed by connectors: programs that keep each message until the gateway acknowledges that it is processed."""

import hmac
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.experimental import protocol
from wallaroo.experimental.protocol import ReceivedFrame
from wallaroo.message.frame import PLAIN, encode_body
from wallaroo_runtime.gateway.connection import Connection
from wallaroo_runtime.gateway.connector_session import CONTROL_BYTES, LINGER_S, ConnectorSession, read_frames
from wallaroo_runtime.gateway.framing import Cut
from wallaroo_runtime.gateway.intake import FRAME_BODY_BYTES, Gathered, Intake
from wallaroo_runtime.gateway.source_progress import point_headers
from wallaroo_runtime.kafka.frame import MESSAGE_BYTES, columns_of
from wallaroo_runtime.service._proto import service_pb2 as pb

MOST_OPEN_STREAMS = 1024
MOST_STREAMS = 65_536
RETRY_S = 0.05
BROKEN = "it broke the rules of the protocol"
RULES = "SPECIFICATION.md, section 7, has the protocol"


@dataclass(slots=True)
class Streams:
    """The streams of messages that connectors send to one source.

    Attributes:
        points: Id of the last message that was taken, by stream.
        owners: Connector that sends the stream, by stream.
        duplicates: Number of dropped messages, which the gateway had taken before.
    """

    config: pb.Source
    points: dict[int, int]
    owners: dict[int, ConnectorSession] = field(default_factory=dict)
    duplicates: int = 0


@dataclass(slots=True)
class ConnectorBatch:
    """Messages of one connection, gathered until they go into the journal as one frame."""

    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    last: dict[int, tuple[int, int]] = field(default_factory=dict)
    size: int = 0

    def add(self, message: ReceivedFrame, now_ms: int) -> None:
        """Add a message of the connection."""
        ((stream, number),) = message.positions
        self.last[stream] = (len(self.values), number)
        self.values.append(message.payload)
        self.keys.append(message.key)
        self.times.append(message.event_time_ns // 1_000_000 if message.event_time_ns else now_ms)
        self.size += cost(message)

    def put(self, intake: Intake, port: int) -> dict[int, int]:
        """Put the messages into the journal, and return the id of the last message of each stream."""
        headers = point_headers(len(self.values), self.last.items())
        earliest, columns = columns_of(self.values, self.keys, self.times, headers)
        flags, parts = encode_body(columns.pop("values"), **columns)
        intake.take_whole(Gathered(port, earliest, len(self.values), sum(map(len, parts)), parts, flags, PLAIN))
        return {stream: point for stream, (_, point) in self.last.items()}


def cost(message: ReceivedFrame) -> int:
    """Return the approximate number of bytes of a message in a frame."""
    return len(message.key) + len(message.payload) + MESSAGE_BYTES


class Connectors:
    """Serves all connectors of a gateway: takes their messages, and acknowledges processed messages.

    Args:
        intake: Takes the messages, and knows which messages are safe and which are processed.
        hello_s: Seconds within which a connector must send HELLO.
    """

    def __init__(
        self, sources: Iterable[pb.Source], intake: Intake, say: Callable[[Diagnostic], None], hello_s: float
    ) -> None:
        points = intake.past.points
        self._streams = {config.port: Streams(config, dict(points[config.port])) for config in sources}
        self._intake, self._say, self._hello_s = intake, say, hello_s
        self._sessions: dict[Connection, ConnectorSession] = {}
        self._batch = ConnectorBatch()

    @property
    def wait(self) -> bool:
        """True if messages of a connector are not acknowledged yet, because they are not processed."""
        return any(session.deliveries for session in self._sessions.values())

    def timeout(self) -> float:
        """Return the seconds until `turn` must be called."""
        is_busy = any(session.has_unsent or session.leaves_at for session in self._sessions.values())
        return RETRY_S if is_busy else float("inf")

    def add(self, connection: Connection) -> None:
        """Note a new connection to a connector source. It must soon send HELLO."""
        self._sessions[connection] = ConnectorSession(connection, time.monotonic() + self._hello_s)

    def remove(self, connection: Connection) -> None:
        """Forget a connection. Other connectors may send its streams now."""
        session = self._sessions.pop(connection, None)
        if session is not None:
            self._release(session)

    def _release(self, session: ConnectorSession) -> None:
        owners = self._streams[session.connection.source.config.port].owners
        for stream in [stream for stream, owner in owners.items() if owner is session]:
            del owners[stream]
        session.streams.clear()
        session.asked.clear()
        session.deliveries.clear()

    def take(self, connection: Connection, data: bytes) -> None:
        """Take whole frames of a connector. If one is wrong, refuse the connector; the frames before it count."""
        session = self._sessions[connection]
        finding = None
        try:
            for frame in read_frames(data):
                finding = (self._message if frame.tag == protocol.MESSAGE else self._control)(session, frame)
                if finding is not None:
                    break
        except protocol.ProtocolError as error:
            finding = self._broke_rules(session, str(error))
        self._put(session)
        if finding is not None:
            self.refuse(connection, finding)

    def check(self, connection: Connection, cut: Cut) -> None:
        """Refuse a connector whose next frame is too large, by its header. The limit is lower before HELLO."""
        session = self._sessions[connection]
        if connection.is_refused:
            return
        if cut.too_large:
            self.refuse(connection, connection.message_too_large(cut.too_large))
        elif session.name is None and cut.wanted > CONTROL_BYTES:
            self.refuse(connection, self._broke_rules(session, f"it begins with a frame of {cut.wanted} bytes"))

    def _broke_rules(self, session: ConnectorSession, reason: str) -> Diagnostic:
        return self._refusal(session, f"{BROKEN}; {reason}")

    @staticmethod
    def _refusal(session: ConnectorSession, reason: str, fix: str = RULES) -> Diagnostic:
        connection = session.connection
        return Diagnostic.of("R676", source=connection.source.config.name, peer=connection.peer, reason=reason, fix=fix)

    def _message(self, session: ConnectorSession, message: ReceivedFrame) -> Diagnostic | None:
        config = session.connection.source.config
        streams = self._streams[config.port]
        ((stream, number),) = message.positions
        if stream not in session.streams:
            return self._broke_rules(session, f"a message of stream {stream}, which is not open")
        if not session.credits:
            return self._broke_rules(session, "a message without a credit")
        if not number:
            return self._broke_rules(session, f"a message of stream {stream} with id 0; they begin at 1")
        if len(message.payload) > config.max_message_bytes:
            return session.connection.message_too_large(len(message.payload))
        session.credits -= 1
        if number <= streams.points[stream]:
            streams.duplicates += 1
            return None
        if self._batch.size + cost(message) > FRAME_BODY_BYTES:
            self._put(session)
        self._batch.add(message, self._intake.now_ms())
        streams.points[stream] = number
        return None

    def _put(self, session: ConnectorSession) -> None:
        if self._batch.values:
            points = self._batch.put(self._intake, session.connection.source.config.port)
            self._batch = ConnectorBatch()
            session.deliver(self._intake.taken, points)

    def _control(self, session: ConnectorSession, frame: ReceivedFrame) -> Diagnostic | None:
        self._put(session)
        if frame.tag == protocol.HELLO:
            return self._hello(session, *frame.texts)
        if session.name is None:
            return self._broke_rules(session, "it did not begin with HELLO")
        ((stream, point),) = frame.positions
        if frame.tag == protocol.NOTIFY:
            self._notify(session, stream, point)
            return None
        if stream not in session.streams:
            return self._broke_rules(session, f"the end of stream {stream}, which is not open")
        session.streams.discard(stream)
        del self._streams[session.connection.source.config.port].owners[stream]
        return None

    def _hello(
        self, session: ConnectorSession, version: str, cookie: str, program: str, instance: str
    ) -> Diagnostic | None:
        config = session.connection.source.config
        if session.name is not None:
            return self._broke_rules(session, "a second HELLO")
        reason = fix = ""
        if version != protocol.PROTOCOL_VERSION:
            reason = f"it speaks version {version[:40]!r} of the protocol, the gateway {protocol.PROTOCOL_VERSION!r}"
            fix = "use a connector of that version"
        elif not hmac.compare_digest(cookie.encode(), config.connector.cookie.encode()):
            reason, fix = "its cookie is not that of the source", "give the connector the cookie of the source's config"
        if reason:
            return self._refusal(session, reason, fix)
        session.name, session.credits = (program, instance), config.connector.max_credits
        session.send(protocol.ok(session.credits))
        return None

    def _notify(self, session: ConnectorSession, stream: int, point: int) -> None:
        streams = self._streams[session.connection.source.config.port]
        owner = streams.owners.get(stream)
        reason = fix = ""
        if owner is not None and owner is not session and owner.name != session.name:
            reason, fix = f"connector {owner.connection.peer} sends it", "end that one, or number the streams otherwise"
        elif stream not in streams.points and len(streams.points) >= MOST_STREAMS:
            reason, fix = f"the source has had {MOST_STREAMS} streams", "go on with streams that there are"
        elif owner is None and sum(each is session for each in streams.owners.values()) >= MOST_OPEN_STREAMS:
            reason, fix = f"it sends {MOST_OPEN_STREAMS} streams already", "end other streams before"
        if reason:
            self._say(self._refusal(session, f"stream {stream} was refused; {reason}", fix))
            session.send(
                protocol.notify_ack(is_accepted=False, stream=stream, point_of_reference=streams.points.get(stream, 0))
            )
            return
        if owner is not None and owner is not session:
            reason = f"another connection of connector {' '.join(owner.name or ())[:80]!r} took over"
            fix = "give connectors that run at one time different instance names"
            self.refuse(owner.connection, self._refusal(owner, reason, fix))
        is_known = stream in streams.points
        streams.owners[stream] = session
        point = streams.points.setdefault(stream, point)
        # A connector never repeats messages up to the point of an opened stream. So these must be safe before it opens.
        session.asked.append((self._intake.taken, stream))
        if is_known:
            session.deliver(self._intake.taken, {stream: point})

    def refuse(self, connection: Connection, finding: Diagnostic) -> None:
        """Send a connector the reason for a refusal, and take no more input; `turn` disconnects it after `LINGER_S`."""
        self._say(finding)
        session = self._sessions[connection]
        self._release(session)
        session.send(protocol.error(f"{finding.code} {finding.message}"))
        session.leaves_at = time.monotonic() + LINGER_S
        connection.is_refused = True

    def turn(self, now: float) -> list[Connection]:
        """Send connectors the frames that they wait for. Called once in every turn of the event loop.

        Returns:
            The connections to close.
        """
        over = []
        for connection, session in self._sessions.items():
            session.flush()
            if session.is_deaf:
                self._say(self._broke_rules(session, "it does not read what is sent to it"))
                over.append(connection)
            elif session.leaves_at is not None:
                if now >= session.leaves_at:
                    over.append(connection)
            elif session.name is None and now >= session.greets_by:
                self.refuse(connection, self._refusal(session, f"no HELLO within {self._hello_s:g} s"))
            elif not session.has_unsent:
                self._tell(session)
        return over

    def _tell(self, session: ConnectorSession) -> None:
        intake, config = self._intake, session.connection.source.config
        while session.asked and intake.is_safe(session.asked[0][0]):
            _, stream = session.asked.popleft()
            session.streams.add(stream)
            point = self._streams[config.port].points[stream]
            session.send(protocol.notify_ack(is_accepted=True, stream=stream, point_of_reference=point))
        end = intake.writer.end
        points = session.processed(end.messages, end.offset, intake.committed)
        most, credits = config.connector.max_credits, 0
        if session.name and session.credits < config.connector.refill_credits and intake.accepts:
            credits = most - session.credits
            session.credits = most
        if points or credits:
            session.send(protocol.ack(credits, points))

    def status(self) -> list[dict[str, Any]]:
        """Return the numbers of connectors, streams and dropped messages for each source, for the status file."""
        sessions = [each for each in self._sessions.values() if each.name is not None and each.leaves_at is None]
        connected = Counter(session.connection.source.config.port for session in sessions)
        return [
            {
                "name": streams.config.name,
                "port": port,
                "connected": connected[port],
                "streams": len(streams.points),
                "open": len(streams.owners),
                "duplicates": streams.duplicates,
            }
            for port, streams in self._streams.items()
        ]

    def restart(self) -> None:
        """Ask all connectors to connect again, because the gateway ends."""
        for session in self._sessions.values():
            if session.name is not None and session.leaves_at is None:
                session.send(protocol.restart())
                session.connection.is_refused = True
