"""Delivers the output of an outbox to all sinks, and reports the progress of each sink."""

import threading
import time
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.durable.file import disk_failure
from wallaroo_runtime.egress.latency import LatencyMeter
from wallaroo_runtime.egress.sink import Sink
from wallaroo_runtime.egress.sink_kind import sink_of
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.status import StatusFile
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.log import LogReader, damaged
from wallaroo_runtime.storage.outbox.position import other_positions
from wallaroo_runtime.system.file_watch import FileWatch

STATUS_S, QUIET_S = 0.1, 0.5
DRAIN_S, ABANDON_S = 5.0, 3.0


class Sender:
    """Delivers the output of an outbox: watches for new output, and wakes a thread for each sink.

    Args:
        directory: Directory of the outbox and the status file.

    Attributes:
        live: The live log (output of real-time mode); None if there is none.
        is_woken: Whether all output comes by calls of `Deliver`, which wake the sender, so that it need not poll.

    Raises:
        RunError: R698 if the outbox is damaged.
    """

    def __init__(self, directory: Path, config: pb.AttachOutboxRequest) -> None:
        self._outbox = directory / "outbox"
        self.status = StatusFile(directory / "egress.json")
        self.status.write("starting")
        self._outbox.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._found: list[Diagnostic] = []
        self._stop = threading.Event()
        self._published: dict[int, int] = {}
        self.live: LiveLog | None = None
        self._latencies = LatencyMeter()
        self.is_woken, self._news = False, threading.Event()
        try:
            self._log = LogReader(self._outbox)
            self._sinks = [sink_of(sink, self._outbox, self._find) for sink in config.sinks]
            gone = other_positions(self._outbox, [sink.port for sink in config.sinks])
            self._remove_delivered()
        except RunError as error:
            self._fail(error)
            raise
        refused = sum(position.refused for position in gone)
        self._gone = {"messages": sum(position.messages for position in gone) - refused, "refused": refused}
        self._write_status("running")

    def _find(self, diagnostic: Diagnostic) -> None:
        with self._lock:
            self._found.append(diagnostic)
        self._news.set()

    def _remove_delivered(self) -> None:
        """At the start, remove files that are delivered completely, and count the bytes of the others."""
        sinks = {sink.config.port: sink for sink in self._sinks}
        for record in self._log.records():
            for index, file in enumerate(record.files):
                if file.port not in sinks:
                    continue
                if sinks[file.port].is_done_with(record.number, index):
                    (self._outbox / file.name).unlink(missing_ok=True)
                else:
                    self._published[file.port] = self._published.get(file.port, 0) + file.bytes

    def use(self, live: LiveLog, latencies: LatencyMeter) -> None:
        """Also deliver the live log (output of real-time mode). The writer of the log calls `wake` for new output."""
        for sink in self._sinks:
            sink.live, sink.latencies = live, latencies
        self.live, self._latencies = live, latencies

    def wake(self, port: int) -> None:
        """Signal that the live log has new output for the sink of a port."""
        for sink in self._sinks:
            if sink.config.port == port:
                sink.wake()
        if not self._news.is_set():
            self._news.set()

    def waiting_bytes(self) -> int:
        """Return the size of the live log from the first output that some sink has not delivered."""
        if self.live is None:
            return 0
        messages = self.live.state.messages
        waiting = (sink for sink in self._sinks if messages[sink.config.port] > sink.position.live_messages)
        return self.live.end - min((sink.position.live for sink in waiting), default=self.live.end)

    def _remove_live(self) -> None:
        """Remove the beginning of the live log: the output that all sinks have delivered."""
        if self.live is not None:
            kept = (sink.done_live for sink in self._sinks if self.live.state.messages[sink.config.port])
            self.live.remove(min(kept, default=self.live.safe))

    def stop(self) -> None:
        """Make `run` deliver the waiting output and end. Any thread or signal handler may call this."""
        self._stop.set()
        self._news.set()

    def run(self) -> None:
        """Deliver until `stop` is called.

        Raises:
            RunError: The error that ended a sink, e.g. R698; delivery has ended.
        """
        for sink in self._sinks:
            sink.start()
        with FileWatch(self._outbox) as watch:
            self._deliver(watch)
        self._drain()

    def _deliver(self, watch: FileWatch) -> None:
        seen, status_at, is_moving = self._log.changed(), 0.0, True
        while not self._stop.is_set():
            now = time.monotonic()
            if self.is_woken or now >= status_at:
                status_at = now + STATUS_S
                self._news.clear()
                is_moving = self._write_status("running")
                self._raise_failure()
                self._remove_live()
            changed = self._log.changed()
            if changed != seen:
                seen = changed
                self._take_records()
            if self.is_woken and not is_moving and not self.waiting_bytes():
                self._news.wait(QUIET_S)
            elif self.is_woken:
                self._stop.wait(STATUS_S)
            else:  # until the driver publishes
                watch.wait(STATUS_S)

    def _take_records(self) -> None:
        for record in self._log.records():
            for file in record.files:
                self._published[file.port] = self._published.get(file.port, 0) + file.bytes
        for sink in self._sinks:
            sink.wake()

    def _raise_failure(self) -> None:
        for sink in self._sinks:
            if sink.error is not None:
                self._fail(sink.error)
                raise sink.error

    def _fail(self, error: RunError | OSError) -> None:
        if isinstance(error, OSError):
            error = disk_failure(error, self._outbox) or damaged(self._outbox, error)
        for finding in error.diagnostics:
            self.status.say(finding)
        self.status.write("failed")

    def _drain(self) -> None:
        for sink in self._sinks:
            sink.drain()
        deadline = time.monotonic() + DRAIN_S
        for sink in self._sinks:
            while not sink.join(STATUS_S) and time.monotonic() < deadline:
                self._write_status("draining")
        for sink in self._sinks:
            sink.abandon()
        for sink in self._sinks:
            sink.join(ABANDON_S)
        self._take_records()
        self._raise_failure()
        self._write_status("stopped")

    def _write_status(self, state: str) -> bool:
        """Write the status file. Return whether the status differs from that of the last call."""
        with self._lock:
            findings, self._found = self._found, []
        for diagnostic in findings:
            self.status.say(diagnostic)
        live = {} if self.live is None else {"live": self._live_status(self.live)}
        sinks = [self._sink_status(sink) for sink in self._sinks]
        return self.status.write(state, records=self._log.base.number, sinks=sinks, gone=self._gone, **live)

    def _live_status(self, live: LiveLog) -> dict[str, object]:
        writers, messages = tuple(live.state.writers.values()), live.state.messages.copy()  # tasks change both values
        return {
            "bytes": live.end,
            "waiting_bytes": self.waiting_bytes(),
            "messages": messages.total() - messages[DEAD_LETTER_PORT],
            "dead_letters": messages[DEAD_LETTER_PORT],
            "dropped": live.dropped,
            "batch": max((writer.batch for writer in writers), default=-1),
            "latency_ms": self._latencies.to_json(),
        }

    def _sink_status(self, sink: Sink) -> dict[str, object]:
        port, position = sink.config.port, sink.position
        published, waiting = self._log.base.messages[port], 0
        if self.live is not None and self.live.state.messages[port]:
            published += self.live.state.messages[port]
            waiting = (self.live.end - position.live) * (published > position.messages)
        return {
            "port": port,
            "name": sink.config.name,
            "address": sink.address,
            "state": sink.state,
            "outage": sink.outage.to_json() if sink.outage and sink.state == "unreachable" else None,
            "messages": position.messages - position.refused,
            "refused": position.refused,
            "bytes": position.total_bytes,
            "pending_messages": published - position.messages,
            "pending_bytes": self._published.get(port, 0) - sink.finished_bytes + waiting,
        }
