"""Receives what the sequence checker sends and checks every line: nothing lost, nothing twice, the order kept."""

import contextlib
import socket
import threading
from collections import Counter


class Ledger:
    """Listens where the sink sends to; one connection after the other.

    Attributes:
        counts: Lines of each word, repeated ones not counted.
        repeated: Lines that a connection repeated from the one before.
        repeating: Connections that did.
        differences: Lines that should not have come as they did.
        first: What was wrong with the first of them.
    """

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.counts: Counter[str] = Counter()
        self.lines = self.repeated = self.repeating = self.differences = 0
        self.first = ""
        self._closed = False
        self._again: dict[str, int] | None = None
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._closed:
                connection, _ = self.listener.accept()
                with connection:
                    self._read(connection)

    def _read(self, connection: socket.socket) -> None:
        rest = b""
        self.new_connection()
        with contextlib.suppress(ConnectionError):
            while not self._closed and (block := connection.recv(1 << 20)):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    self.take(line.decode())

    def new_connection(self) -> None:
        """Allow that what comes next repeats the end of what came before."""
        self._again = {}

    def take(self, line: str) -> None:
        """Check one line."""
        word, count_text, number = line.split(" ")
        count, known = int(count_text), self.counts[word]
        if count_text != number:
            self._differ(f"{line}: the state counted {count_text}, the message is number {number}")
        if count == known + 1:
            self._end_of_repetition()
            self.counts[word] = count
            self.lines += 1
        elif count <= known and self._again is not None and self._again.get(word, count - 1) == count - 1:
            self.repeating += not self._again
            self._again[word] = count
            self.repeated += 1
        else:
            self._differ(f"{line}: it came where {known + 1} belongs")

    def _end_of_repetition(self) -> None:
        """What a connection repeats at its beginning is the end of what came before, all of it."""
        again, self._again = self._again, None
        for word, count in (again or {}).items():
            if count != self.counts[word]:
                self._differ(f"{word} {count} was repeated, but not up to {self.counts[word]}")

    def _differ(self, text: str) -> None:
        self.differences += 1
        self.first = self.first or text

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
