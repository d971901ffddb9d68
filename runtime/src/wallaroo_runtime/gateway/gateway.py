"""The gateway: listens for the sources of an application and journals their messages."""

import contextlib
import os
import selectors
import time
from collections.abc import Callable
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.config import CONNECTOR, Limits
from wallaroo_runtime.gateway.connection import Connection, Source, accept, descriptor_limit, listen_all
from wallaroo_runtime.gateway.connector import Connectors
from wallaroo_runtime.gateway.framing import Cut, Splitter
from wallaroo_runtime.gateway.generator import Generators, Maker, MessageGenerator
from wallaroo_runtime.gateway.intake import Intake
from wallaroo_runtime.gateway.kafka_source import KafkaSources, points_of
from wallaroo_runtime.gateway.partial_message import SMALL_TAIL_BYTES, resumed, stalled
from wallaroo_runtime.gateway.source_progress import SourceProgress
from wallaroo_runtime.gateway.split import SplitThread
from wallaroo_runtime.gateway.tick import TickWriter
from wallaroo_runtime.gateway.visit import VisitIntake
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.status import StatusFile
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.writer import JournalWriter

RECEIVE_BYTES = 1024 * 1024
ACCEPTS_PER_TURN = 64
SPARE_DESCRIPTORS = 64

SplitterFactory = Callable[[pb.Source], Splitter]
MakerFactory = Callable[[pb.Generator], Maker]
LIMITS = Limits()


class Gateway:
    """Takes the messages of all sources in one event loop. Only writes to the journal block this loop.

    Args:
        directory: Directory of the journal and the status file.
        config: Sources and limits, as the driver sends them.
        splitter: Makes the `Splitter` of a source that only its worker can cut.
        maker: Makes the `Maker` of a generator source.
        has_driver: Returns whether a driver is alive. Without a driver, no ticks are written.
        moved: Called with the end of the journal's readable part when it has moved.
        limits: Limits that no driver changes.

    Attributes:
        visits: Takes visits (calls of user code for each key of a state).

    Raises:
        RunError: R714 if an address cannot be used; R610 if another process writes the journal; R698 if it is damaged.
    """

    def __init__(
        self,
        directory: Path,
        config: pb.AttachJournalRequest,
        splitter: SplitterFactory,
        maker: MakerFactory,
        *,
        has_driver: Callable[[], bool] = lambda: True,
        moved: Callable[[Position], None] = lambda position: None,
        limits: Limits = LIMITS,
    ) -> None:
        self._journal, self._config, self._limits = directory / "journal", config, limits
        self.status = StatusFile(directory / "gateway.json")
        self.status.write("starting")
        writer: JournalWriter | None = None
        try:
            writer = JournalWriter(self._journal, limits.segment_bytes, moved)
            connectors = [source for source in config.sources if source.framing == CONNECTOR]
            generators = config.generators
            past = SourceProgress(
                self._journal, *([each.port for each in part] for part in (generators, connectors, config.kafka))
            )
            past.advance(writer.safe.offset)
            points = {each.port: points_of(each, past) for each in config.kafka}
            if points:
                past.save()  # a restart must use the same first offsets of a topic
            self._sources = listen_all(config.sources)
        except (OSError, RunError) as error:
            if writer is not None:
                writer.close()  # a service retries in this process, where the journal's lock must be free
            for diagnostic in error.diagnostics if isinstance(error, RunError) else ():
                self.status.say(diagnostic)
            self.status.write("failed")
            raise
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        interval_s = config.fsync_interval_ms / 1000
        self._intake = Intake(writer, config.fsync, interval_s, config.backlog_bytes, past, self.wake)
        source_generators = [
            MessageGenerator(each, maker(each), past.values.get(each.port), self.wake) for each in generators
        ]
        self._generators = Generators(source_generators, self._intake, self.status.say)
        self._connectors = Connectors(connectors, self._intake, self.status.say, limits.hello_s)
        self._kafka = KafkaSources(config.kafka, points, self._intake, self.status.say, self.wake)
        self._ticks = TickWriter(self._intake, has_driver, config.tick_ms)
        self.visits = VisitIntake(self._intake, config.visits, self.wake)
        self._splits = {
            source.config.port: SplitThread(splitter(source.config), source.config, self.wake)
            for source in self._sources
            if source.cut is None
        }
        # All connections are in an inner selector, so that one call pauses or resumes reading of all connections.
        self._control = selectors.DefaultSelector()
        self._traffic = selectors.EpollSelector()
        self._control.register(self._wake_read, selectors.EVENT_READ)
        self._reads = self._accepts = False
        self._connections: set[Connection] = set()
        self._ending: set[Connection] = set()
        self._waiting: set[Connection] = set()
        self._room = bytearray(RECEIVE_BYTES)
        self._buffered = 0
        self._most = min(limits.max_connections, descriptor_limit() - SPARE_DESCRIPTORS - len(self._sources))
        self._limit = self._most
        self._stopping = self._disk_full_said = self._crowded_said = False
        self._write_status("listening")

    def addresses(self) -> list[tuple[str, int]]:
        """Return the addresses at which the sources really listen."""
        return [source.listener.getsockname()[:2] for source in self._sources]

    def wake(self) -> None:
        """Make the event loop run without waiting for input. Any thread or signal handler may call this."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"\0")

    def stop(self) -> None:
        """Make `run` end. Any thread or signal handler may call this."""
        self._stopping = True
        self.wake()

    def run(self) -> None:
        """Serve until `stop` is called, then make everything safe.

        Raises:
            RunError: The error that ended the loop, and R800 if messages that were read are lost.
        """
        failure: OSError | RunError | None = None
        tick_at = 0.0
        try:
            while not self._stopping:
                now = time.monotonic()
                if now >= tick_at:
                    tick_at = now + self._limits.look_s
                    self._tick(now)
                self._regulate()
                self._ticks.turn(now)
                self.visits.turn()
                waits = (tick_at - now, self._ticks.wait(now), self._intake.timeout(now), self._connectors.timeout())
                self._serve(max(0.0, min(wait for wait in waits if wait is not None)))
                if self._kafka.turn():
                    self._generators.turn()
                self._tell_wait()
                self._intake.turn(time.monotonic())
                self._acknowledge()
                for connection in self._connectors.turn(time.monotonic()):
                    self._drop(connection, None)
        except (OSError, RunError) as error:
            failure = error
        finally:
            self._close(failure)

    def _tell_wait(self) -> None:
        """Write the status when sources start or stop waiting for commits, because the driver then commits sooner."""
        waits = self._generators.wait or self._connectors.wait or self.visits.open > 0
        if waits != self._intake.is_awaited:
            self._intake.is_awaited = waits
            self._write_status("listening")

    def _tick(self, now: float) -> None:
        for connection, finding in stalled(self._connections, now, self._limits.stall_s, bool(self._waiting)):
            self._drop(connection, finding)
        crowded, self._limit = len(self._connections) >= self._limit, self._most
        if crowded and not self._crowded_said:
            self.status.say(Diagnostic.of("R699", count=len(self._connections)))
        self._crowded_said = crowded
        full = self._intake.disk_is_full
        if full and not self._disk_full_said:
            self.status.say(Diagnostic.of("R614", path=self._journal, effect="reading of sources is paused"))
        self._disk_full_said = full
        self._write_status("listening")

    def _write_status(self, state: str) -> None:
        intake = self._intake
        self.status.write(
            state,
            sources=[source.address for source in self._sources],
            connections=len(self._connections),
            **intake.status(),
            visits=self.visits.open,
            generators=self._generators.status(),
            connectors=self._connectors.status(),
            kafka=self._kafka.status(),
        )

    def _regulate(self) -> None:
        """Read connections and accept new ones only while there is room for more input."""
        reads = self._intake.accepts and not self._kafka.hold
        if reads != self._reads:
            self._reads = reads
            if reads:
                self._control.register(self._traffic.fileno(), selectors.EVENT_READ)
            else:
                self._control.unregister(self._traffic.fileno())
            for connection in (key.data for key in self._traffic.get_map().values()):
                connection.pace.go_on(time.monotonic()) if reads else connection.pace.pause(time.monotonic())
        if self._waiting:
            for connection in resumed(self._connections, self._waiting, self._buffered < self._limits.buffer_bytes):
                self._waiting.discard(connection)
                self._resume(connection)
        self._accept_while(len(self._connections) < self._limit)

    def _resume(self, connection: Connection) -> None:
        """End the pause of one connection. It is read as soon as the gateway reads any connections."""
        self._traffic.register(connection.socket, selectors.EVENT_READ, connection)
        if self._reads:
            connection.pace.go_on(time.monotonic())

    def _accept_while(self, accepts: bool) -> None:
        if accepts == self._accepts:
            return
        self._accepts = accepts
        for source in self._sources:
            if accepts:
                self._control.register(source.listener, selectors.EVENT_READ, source)
            else:
                self._control.unregister(source.listener)

    def _serve(self, timeout: float) -> None:
        for key, _ in self._control.select(timeout):
            if key.fd == self._wake_read:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
                self._take_splits()
            elif isinstance(key.data, Source):
                self._accept(key.data)
            else:
                self._read_connections()

    def _accept(self, source: Source) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if len(self._connections) >= self._limit:
                return
            try:
                connection = accept(source)
            except OSError:
                # No descriptors or buffers are left. Accept again after a connection closes, or at the next tick.
                self._limit = len(self._connections)
                return
            if connection is None:
                return
            self._connections.add(connection)
            if source.is_connector:
                self._connectors.add(connection)
            self._traffic.register(connection.socket, selectors.EVENT_READ, connection)

    def _read_connections(self) -> None:
        ready: list[Connection] = [key.data for key, _ in self._traffic.select(0)]
        # Read source after source: that makes fewer and larger frames. No order is promised between ready connections.
        ready.sort(key=lambda connection: connection.source.config.port)
        for connection in ready:
            if self._intake.disk_is_full:
                return
            self._read(connection)

    def _read(self, connection: Connection) -> None:
        try:
            size = connection.socket.recv_into(self._room)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._drop(connection, connection.cut_message())
            return
        if not size:
            self._end(connection)
            return
        if connection.is_refused:
            return  # the peer still gets time to read the reason
        if connection.source.cut is None:
            self._extend(connection, size)
            self._split(connection)
        elif connection.tail:
            self._extend(connection, size)
            if len(connection.tail) >= connection.wanted:
                tail = connection.tail
                self._take(connection, tail, connection.source.cut(tail, len(tail)))
        else:
            self._take(connection, self._room, connection.source.cut(self._room, size), size)

    def _extend(self, connection: Connection, size: int) -> None:
        connection.extend(memoryview(self._room)[:size], time.monotonic())
        self._buffered += size
        if self._buffered > self._limits.buffer_bytes and len(connection.tail) > SMALL_TAIL_BYTES:
            self._hold_back(connection)

    def _hold_back(self, connection: Connection) -> None:
        """Pause a connection with a large partial message, unless that is the largest of all partial messages."""
        largest = max(self._connections, key=lambda other: len(other.tail))
        if connection is not largest and connection not in self._waiting:
            self._waiting.add(connection)
            connection.pace.pause(time.monotonic())
            self._traffic.unregister(connection.socket)

    def _take(self, connection: Connection, data: bytearray, cut: Cut, size: int | None = None) -> None:
        """Take the whole messages at the beginning of `data`. Keep the rest until more bytes arrive."""
        view = memoryview(data)
        size = len(data) if size is None else size
        if cut.count:
            self._take_whole(connection, cut.count, bytes(view[: cut.end]))
        rest = bytearray(view[cut.end : size])
        self._buffered += len(rest) - len(connection.tail)
        if cut.count or not connection.tail:
            connection.pace.begin(time.monotonic())
        connection.tail, connection.wanted = rest, cut.wanted
        if connection.source.is_connector:
            self._connectors.check(connection, cut)
        elif cut.too_large:
            self._drop(connection, connection.message_too_large(cut.too_large))

    def _take_whole(self, connection: Connection, count: int, data: bytes) -> None:
        if connection.source.is_connector:
            self._connectors.take(connection, data)
        else:
            connection.taken = self._intake.taken + count  # set before `take`, which may raise an error
            self._intake.take(connection.source.config.port, count, data)

    def _split(self, connection: Connection) -> None:
        """Let the worker cut the received bytes into messages. Until it has answered, do not read the connection."""
        if connection not in self._waiting:
            self._traffic.unregister(connection.socket)
        self._waiting.discard(connection)
        connection.pace.pause(time.monotonic())
        self._splits[connection.source.config.port].ask(connection, bytes(connection.tail))

    def _take_splits(self) -> None:
        for thread in self._splits.values():
            for connection, cut in thread.answers():
                if isinstance(cut, Diagnostic):
                    self._drop(connection, cut)
                    continue
                self._resume(connection)
                self._take(connection, connection.tail, cut)

    def _end(self, connection: Connection) -> None:
        """Handle a connection whose peer has closed its side. The peer gets EOF as soon as its messages are safe."""
        if line := connection.last_line():
            self._take(connection, bytearray(line), Cut(1, len(line)))
        if connection.tail or connection.source.is_connector:
            self._drop(connection, connection.cut_message())
            return
        self._traffic.unregister(connection.socket)
        connection.has_ended = True
        self._ending.add(connection)

    def _acknowledge(self) -> None:
        for connection in [each for each in self._ending if self._intake.is_safe(each.taken)]:
            self._ending.discard(connection)
            self._forget(connection)
            connection.close(self._intake.is_safe)

    def _drop(self, connection: Connection, diagnostic: Diagnostic | None) -> None:
        """Close a connection that cannot go on. Messages already taken from it are not lost."""
        if diagnostic is not None:
            self.status.say(diagnostic)
        with contextlib.suppress(KeyError):
            self._traffic.unregister(connection.socket)
        self._forget(connection)
        connection.close(self._intake.is_safe)

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._waiting.discard(connection)
        self._connectors.remove(connection)
        self._buffered -= len(connection.tail)
        self._limit = self._most

    def _close(self, failure: OSError | RunError | None) -> None:
        """Write the taken messages, then close each connection: with EOF only if its messages are safe."""
        for source in self._sources:
            source.listener.close()
        self._kafka.close()
        findings = self._intake.close(failure)
        self.visits.close()
        self._connectors.restart()
        for connection in self._connections:
            connection.look()
            connection.close(self._intake.is_safe)
        for thread in self._splits.values():
            thread.close()
        self._generators.close()
        self._kafka.settle()
        for finding in findings:
            self.status.say(finding)
        self._write_status("failed" if findings else "stopped")
        if findings:
            raise RunError(findings) from failure
