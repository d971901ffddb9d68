"""Holds micro-batches back while the outbox is full."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.durable.file import disk_failure
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.micro_batches import Publish, Rows
from wallaroo_runtime.storage.place import DriverOutput

LOOK_S = 0.1


class OutboxGate:
    """Lets a micro-batch begin when the outbox has room for its output, and keeps the error if publishing fails.

    Args:
        publish: Publishes a micro-batch that has run.
        max_outbox_bytes: No micro-batch begins while more bytes than this wait for sinks.
        check: Called before each micro-batch. An error that it raises ends the query.
        findings: Findings of the start, which `new_findings` returns first.

    Attributes:
        failure: The error with which this gate stopped the query, if it did.
        error: The last other exception that passed the gate. It is kept here because Spark keeps only its text.
        is_waiting: Whether a micro-batch waits until the outbox has room.
        batch: Number of the micro-batch that began last, -1 before the first one.
        first: Number of the first micro-batch.
    """

    def __init__(
        self,
        publish: Publish,
        outbox: DriverOutput,
        max_outbox_bytes: int,
        check: Callable[[], None] = lambda: None,
        findings: Iterable[Diagnostic] = (),
    ) -> None:
        self.failure: RunError | None = None
        self.error: Exception | None = None
        self.is_waiting, self.batch, self.first = False, -1, -1
        self._publish, self._outbox, self._max_outbox_bytes = publish, outbox, max_outbox_bytes
        self._check, self._findings = check, list(findings)
        self._ended = threading.Event()

    def begin(self, batch: int) -> None:
        """Wait until the outbox has room for the output of a micro-batch. Then call `check`."""
        self.batch, self.first = batch, batch if self.first < 0 else self.first
        with self._noting():
            self._wait()
            self._check()

    def publish(self, rows: Rows, batch: int) -> None:
        """Publish a micro-batch, and record the error if this fails."""
        with self._noting():
            self._publish(rows, batch)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except RunError as error:  # e.g. a remote egress did not report how many bytes wait
            self.failure = error
            raise
        except Exception as error:
            self.failure = disk_failure(error, self._outbox.name) if isinstance(error, OSError) else None
            self.error = error
            raise

    def _wait(self) -> None:
        while (size := self._outbox.size()) > self._max_outbox_bytes:
            if not self.is_waiting:
                self._findings.append(Diagnostic.of("R625", size=size, limit=self._max_outbox_bytes))
                self.is_waiting = True
            if self._ended.wait(LOOK_S):
                reason = "the query was asked to stop while it waited for the sinks"
                raise RuntimeError(reason)  # not a `RunError`, which would be the failure of a run that is stopped
        self.is_waiting = False

    def end(self) -> None:
        """Let the micro-batch that waits for room fail, because the query stops. The next run processes it."""
        self._ended.set()

    def new_findings(self) -> list[Diagnostic]:
        """Return the warnings since the last call. A full outbox is reported once each time that it becomes full."""
        findings, self._findings = self._findings, []
        return findings
