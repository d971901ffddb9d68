"""Reads records of topics from lines of standard input, in a thread, for `wallaroo run --engine memory`."""

import os
import select
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo_runtime.case.topics import VISIT, record_of
from wallaroo_runtime.errors import RunError

SOURCE, STDIN, READ_BYTES = "standard input", 0, 65536


class RecordInput:
    """Reads records of topics and requests of visits from standard input, in a thread.

    Args:
        say: Called with the finding about each line that is no record.
        descriptor: File descriptor of the input.

    Attributes:
        is_over: Whether the input has ended, and `take` has returned all of it.
    """

    def __init__(self, say: Callable[[Diagnostic], None], descriptor: int = STDIN) -> None:
        self._say, self._descriptor = say, descriptor
        self._lines, self._number, self.is_over = deque[str | None](), 0, False
        self._turn = threading.Lock()
        threading.Thread(target=self._read, name="records", daemon=True).start()

    def _read(self) -> None:
        """Read lines until the input ends. Use no file object: its lock would delay the end of the process."""
        rest = b""
        try:
            while data := self._next():
                *lines, rest = (rest + data).split(b"\n")
                self._lines += [line.decode("utf-8", "backslashreplace").rstrip("\r") for line in lines]
        except OSError:
            pass  # the descriptor is closed: the input has ended
        self._lines += [rest.decode("utf-8", "backslashreplace"), "", None]

    def _next(self) -> bytes:
        """Wait for input, and return some bytes; empty at the end. During a block of `paused`, take no input."""
        while True:
            select.select([self._descriptor], [], [])
            with self._turn:
                # The debugger may have read this input while `paused` held the lock.
                if select.select([self._descriptor], [], [], 0)[0]:
                    return os.read(self._descriptor, READ_BYTES)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the input that arrives during the block to another reader, e.g. a debugger."""
        with self._turn:
            yield

    def take(self) -> list[KafkaRecord] | str | None:
        """Return the next input: the records of a micro-batch, or a visit as `NAME METADATA`.

        The result is None if nothing has arrived since the last call.
        """
        batch: list[KafkaRecord] = []
        while self._lines:
            line = self._lines[0]
            if batch and not (line and not line.startswith(VISIT)):
                break
            self._lines.popleft()
            self._number += 1
            if line is None:
                self.is_over = True
            elif line.startswith(VISIT):
                return line.removeprefix(VISIT)
            elif line:
                batch += self._record(line)
        return batch or None

    def _record(self, line: str) -> list[KafkaRecord]:
        try:
            return [record_of(line, self._number, SOURCE)]
        except RunError as error:
            for finding in error.diagnostics:
                self._say(finding)
            return []
