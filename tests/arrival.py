"""Receives what tasks send themselves: many connections at once, every line at least once, in order within each."""

import contextlib
import socket
import threading
from collections import Counter


class Arrivals:
    """Listens where the sink of the sequence checker sends to.

    Attributes:
        counts: Different lines of each word.
        repeated: Each line that came more than once, as (word, number).
        differences: Lines that should not have come as they did.
        first: What was wrong with the first of them.
        connections: How many there were.
    """

    def __init__(self, port: int = 0) -> None:
        self.listener = socket.create_server(("127.0.0.1", port))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.counts: Counter[str] = Counter()
        self.repeated: set[tuple[str, int]] = set()
        self.differences = self.connections = 0
        self.first = ""
        self.reads = threading.Event()
        self.reads.set()
        self._seen: set[tuple[str, int]] = set()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def lines(self) -> int:
        """Different lines so far."""
        return len(self._seen)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                self._threads.append(threading.Thread(target=self._read, args=(connection,), daemon=True))
                self._threads[-1].start()

    def _read(self, connection: socket.socket) -> None:
        rest, last = b"", Counter[str]()
        with connection, contextlib.suppress(ConnectionError):
            while self.reads.wait() and (block := connection.recv(1 << 20)):
                # What a broken connection leaves behind its last whole line is sent again.
                *lines, rest = (rest + block).split(b"\n")
                self._take_all(lines, last)

    def _take_all(self, lines: list[bytes], last: "Counter[str]") -> None:
        with self._lock:
            for line in lines:
                self.take(line.decode(), last)

    def take(self, line: str, last: "Counter[str]") -> None:
        """Check one line of a connection, which had those counts before."""
        word, count_text, number = line.split(" ")
        count = int(count_text)
        if count_text != number:
            self._differ(f"{line}: the state counted {count_text}, the message is number {number}")
        if count <= last[word]:
            self._differ(f"{line}: it came behind {last[word]} on one connection")
        last[word] = count
        if (word, count) in self._seen:
            self.repeated.add((word, count))
        else:
            self._seen.add((word, count))
            self.counts[word] += 1

    def _differ(self, text: str) -> None:
        self.differences += 1
        self.first = self.first or text

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
