"""Delivers the output of one sink over TCP, in a thread of its own. Subclasses deliver to Kafka and to connectors."""

import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.durable.file import NO_ROOM
from wallaroo_runtime.egress.feed import Feed, Piece
from wallaroo_runtime.egress.latency import LatencyMeter
from wallaroo_runtime.egress.position_recorder import RECORD_S, PositionRecorder
from wallaroo_runtime.egress.stream import SinkStream
from wallaroo_runtime.errors import RunError, host_port
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.log import OutboxFile
from wallaroo_runtime.storage.outbox.position import SinkPosition, read_position, write_position
from wallaroo_runtime.system.backoff import Backoff

FIRST_ACK_WAIT_S, LAST_ACK_WAIT_S = 0.001, 0.02
IDLE_S = 1.0
FINISH_S = 2.0
SETTLE_S = 1.0
_chance = random.Random()  # the module has one for all threads, which a program or a test may have seeded
SEND_BYTES = 64 * 1024  # small pieces are sent together up to this size


class Sink:
    """Delivers the output of one sink from the outbox over TCP, and connects again if the connection breaks.

    Args:
        directory: The outbox.
        say: Called with a diagnostic, from the thread.

    Attributes:
        position: Position up to which the receiver's TCP has acknowledged.
        state: connecting, connected, half_closed, unreachable, failed or stopped.
        finished_bytes: Total size of the files that were delivered completely since the start.
        outage: Last finding that the receiver cannot be reached; only valid while `state` is unreachable.
        error: Error that ended the thread.
        live: The live log (output of real-time mode); None if nothing is delivered from it.
        latencies: Measures latencies: gets the number of delivered messages of the live log.
    """

    def __init__(self, config: pb.Sink, directory: Path, say: Callable[[Diagnostic], None]) -> None:
        self.config, self._directory, self._say = config, directory, say
        self.position = self._recorded = self._durable = self._unsafe = read_position(directory, config.port)
        self._delivered: deque[tuple[SinkPosition, OutboxFile]] = deque()  # delivered files, each with its end
        self.state = "connecting"
        self.finished_bytes = 0
        self.outage: Diagnostic | None = None
        self.error: RunError | OSError | None = None
        self.live: LiveLog | None = None
        self.latencies: LatencyMeter | None = None
        self._looked_at, self._has_no_room = 0.0, False
        self._recorder: PositionRecorder | None = None
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._draining = self._abandoned = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sink-{config.port}", daemon=True)

    @property
    def address(self) -> str:
        """HOST:PORT of the receiver."""
        return host_port(self.config.host, self.config.tcp_port)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Signal that the outbox has grown."""
        os.eventfd_write(self._wake, 1)

    def drain(self) -> None:
        """Let the thread end when everything is delivered, or as soon as there is no connection."""
        self._draining = True
        self._stop.set()
        self.wake()

    def abandon(self) -> None:
        """Let the thread end now. The next egress sends messages again that the receiver has not acknowledged."""
        self._abandoned = True
        self.drain()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the thread. Return whether the thread has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._keep_connected()
            self._record(durable=True, must=False)
            self.state = "stopped"
        except (RunError, OSError) as error:
            self.error, self.state = error, "failed"
        except Exception as error:  # any error must be reported: otherwise nobody notices that the thread has ended
            what = f'sink "{self.config.name}" cannot go on: {type(error).__name__}: {error}'
            self.error, self.state = RunError.of("I901", reason=what), "failed"

    def _keep_connected(self) -> None:
        backoff = Backoff(0.05, 5.0)
        while not self._abandoned:
            try:
                stream = self._connect()
            except OSError as error:
                self._tell_outage(error)
            else:
                before = self.position
                self._tell_connected()
                if self._use(stream):
                    return
                if self._is_lasting(before):
                    backoff.count = 0
            if self._stop.wait(backoff.next() * _chance.uniform(0.5, 1.0)):
                return

    def _name_output(self, name: str) -> None:
        """Give the output a permanent name, unless it has one. Receivers with transactions know the output by it."""
        if not self.position.sender:
            self.position = replace(self.position, sender=name, base=self.position.total_bytes)
            self._record(durable=True)

    def _connect(self) -> Any:
        return SinkStream(self.config, self._wake)

    def _tell_connected(self) -> None:
        self.state = "connected"

    def _tell_outage(self, error: OSError) -> None:
        if self.state != "unreachable":
            self.state = "unreachable"
            reason = error.strerror or str(error)
            fix = f"`wallaroo receive --listen {self.address}`, or a program of yours"
            self._note_outage(self.address, reason, fix)

    def _note_outage(self, address: str, reason: str, fix: str) -> None:
        self.outage = Diagnostic.of("R613", sink=self.config.name, address=address, reason=reason, fix=fix)
        self._say(self.outage)

    def _is_lasting(self, before: SinkPosition) -> bool:
        """Return whether the broken connection, which began at position `before`, was usable: then connect soon."""
        return True

    def _use(self, stream: SinkStream) -> bool:
        """Deliver over a connection. Return False if it breaks, and True if all is delivered or abandoned."""
        feed = Feed(self._directory, self.config.port, self.position)
        name = f"record-{self.config.port}"
        self._recorder = recorder = PositionRecorder(self._try_record, self.wake, name)
        broken: OSError | None = None
        try:
            self._deliver(stream, feed, recorder)
            if self._abandoned:
                stream.settle(SETTLE_S)
        except ConnectionError as error:
            broken = error
        except OSError as error:
            if error.filename is not None or error is recorder.error:
                raise  # the error is of a file, not of the connection
            broken = error
        finally:
            stream.close()
            self._acknowledge(stream)
            self._advance(stream.partly())
            feed.close()
            recorder.close()
        if broken is not None:
            self.state = "connecting"
            self._record(durable=False, must=False)
        return broken is None

    def _deliver(self, stream: SinkStream, feed: Feed, recorder: PositionRecorder) -> None:
        look, has_news = Backoff(FIRST_ACK_WAIT_S, LAST_ACK_WAIT_S), True
        while not self._abandoned:
            if recorder.error is not None:
                raise recorder.error
            self._acknowledge(stream)
            pieces = feed.several(SEND_BYTES) if has_news and not stream.is_sending else ()
            if pieces:
                stream.put(pieces)
                look.count = 0
            elif stream.is_sending:
                stream.wait(LAST_ACK_WAIT_S)
                stream.send()
            elif not stream.is_idle:
                # The kernel gives no signal when acknowledgements arrive, so look for them from time to time.
                has_news = stream.wait(look.next())
            elif self._draining and has_news:
                self._finish(stream)
                return
            else:
                stream.wait(IDLE_S)
                has_news = True
            if not stream.peer_is_open:
                self.state = "half_closed"

    def _finish(self, stream: SinkStream) -> None:
        stream.finish()
        deadline = time.monotonic() + FINISH_S
        while not stream.is_finished and time.monotonic() < deadline and not self._abandoned:
            stream.wait(FIRST_ACK_WAIT_S)

    def _acknowledge(self, stream: SinkStream) -> None:
        for piece in stream.acknowledged():
            if piece.after.is_after(self.position):
                self._finish_file(piece)  # note the files first, since `_advance` allows the removal of noted files
                self._advance(piece.after)
        now = time.monotonic()
        if now >= self._looked_at + RECORD_S:
            self._looked_at = now
            self._advance(stream.partly())

    def _finish_file(self, piece: Piece) -> None:
        """If a delivered piece (messages of one frame) was the last of a file, note that the file may be removed."""
        if piece.finished is not None:
            self._delivered.append((piece.after, piece.finished))
            self.finished_bytes += piece.finished.bytes

    def _take(self, pieces: list[Piece], end: SinkPosition, *, durable: bool = True) -> None:
        """Move the position past pieces that the receiver has taken or prepared, and record the position.

        If the receiver has prepared the transaction, this record is the decision to commit it.
        """
        for piece in pieces:
            self._finish_file(piece)
        self._advance(end)
        self._record(durable=durable)

    def _advance(self, position: SinkPosition | None) -> None:
        """Move the position forward, in memory; it never moves back."""
        if position is not None and position.is_after(self.position):
            self.position = position
            if self.latencies is not None:
                self.latencies.take(self.config.port, position.live_messages)
            if self._recorder is not None:
                self._recorder.notify()

    def _try_record(self, durable: bool) -> bool:
        self._record(durable=durable, must=False)
        return not self._has_no_room

    def _record(self, *, durable: bool, must: bool = True) -> None:
        """Write the position to its file, if it has changed.

        Args:
            durable: Whether the record must survive a loss of power.
            must: Whether a full disk raises an error. Otherwise it is reported, and delivery goes on.
        """
        position = self._recordable(durable=durable)
        if position == (self._durable if durable else self._recorded):
            return
        reach("egress.before_position")
        try:
            write_position(self._directory, self.config.port, position, durable=durable)
        except OSError as error:
            if must or error.errno not in NO_ROOM:
                raise
            if not self._has_no_room:
                self._has_no_room = True
                effect = f'how far sink "{self.config.name}" has come is not recorded'
                effect += "; what it takes comes again if the run ends before that is"
                self._say(Diagnostic.of("R614", path=self._directory, effect=effect))
            return
        self._recorded, self._has_no_room = position, False
        if durable:
            self._durable = position
            # Not earlier, because delivery after a loss of power would need these files again.
            self._remove(position)

    def _remove(self, position: SinkPosition) -> None:
        """Remove the delivered files that end at or before a position that is safe on disk."""
        while self._delivered and not self._delivered[0][0].is_after(position):
            (self._directory / self._delivered.popleft()[1].name).unlink(missing_ok=True)

    def _recordable(self, *, durable: bool) -> SinkPosition:
        """Return the latest position that may be recorded: one up to which the live log is safe on disk.

        Otherwise a loss of power could remove output from the log that counts as delivered.
        """
        position, live = self.position, self.live
        if live is None or position.live_needed <= live.safe:
            return position
        if durable:
            live.sync()
            return position
        before, self._unsafe = self._unsafe, position  # by now, output before the former position may be safe
        return before if before.is_after(self._recorded) and before.live_needed <= live.safe else self._recorded

    def is_done_with(self, record: int, index: int) -> bool:
        """Return whether this sink has delivered a file of the outbox: file `index` of log record `record`."""
        return (record, index) < (self._durable.record, self._durable.file)

    @property
    def done_live(self) -> int:
        """Number of bytes at the beginning of the live log that this sink never needs again."""
        return self._durable.live
