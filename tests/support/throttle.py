"""A sender that survives its gateway: it sends at a rate, and goes on with the message that the journal has not got."""

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from wallaroo_runtime.storage.journal.reader import JournalReader

SLICE_S = 0.05
CONNECTION_S = 2.0
RETRY_S = 0.1
ANSWER_S = 60.0
Dial = Callable[[tuple[str, int]], socket.socket]


def _dial(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=ANSWER_S)


class Throttle:
    """Sends the messages of a seed: number i is always the same, and an item of it is `WORD:N`, N counting the word.

    Args:
        address: Where the source listens, also after a restart.
        journal: The journal directory; it shows how many messages were taken.
        seed: Of the messages.
        rate: Messages per second.
        words: Different words.
        dial: Connects to the address, which may be that of a host that is not this one.

    Attributes:
        acknowledged: Messages that an EOF said are safe.
        goal: Messages to send; it may be raised at any time.
        fault: What the gateway promised and did not keep; empty when nothing.
    """

    def __init__(
        self, address: tuple[str, int], journal: Path, seed: int, rate: int, words: int = 500, dial: Dial = _dial
    ) -> None:
        self.address, self.journal, self.rate = address, journal, rate
        self.acknowledged, self.goal, self.fault = 0, 0, ""
        self._random = random.Random(seed)
        self._dial = dial
        self._words = [f"w{number}" for number in range(words)]
        self._sent: Counter[str] = Counter()
        self._messages: list[bytes] = []
        self._making = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def message(self, number: int) -> bytes:
        """Return a message as it goes over the wire."""
        with self._making:
            while number >= len(self._messages):
                self._messages.append(self._make())
            return self._messages[number]

    def _make(self) -> bytes:
        words = self._random.choices(self._words, k=self._random.randint(1, 3))
        items = []
        for word in words:
            self._sent[word] += 1
            items.append(f"{word}:{self._sent[word]}")
        text = " ".join(items).encode()
        return len(text).to_bytes(4, "big") + text

    def settle(self) -> int:
        """Return a goal near at hand that is not below what a connection in progress sends."""
        return len(self._messages) + int(2 * CONNECTION_S * self.rate)

    def expected(self) -> Counter[str]:
        """Count the words of all messages up to the goal, one after the other."""
        texts = (self.message(number)[4:].decode() for number in range(self.goal))
        return Counter(item.partition(":")[0] for text in texts for item in text.split(" "))

    def _run(self) -> None:
        while not self._closed.is_set() and not self.fault:
            if self.acknowledged >= self.goal:
                self._closed.wait(SLICE_S)
                continue
            try:
                self._connect()
            except OSError:
                self._closed.wait(RETRY_S)

    def _connect(self) -> None:
        with self._dial(self.address) as connection:
            connection.settimeout(ANSWER_S)
            # The gateway that listens has the journal open: what another one left in it is counted.
            at = JournalReader(self.journal).end().messages
            if at < self.acknowledged:
                self.fault = f"{self.acknowledged} messages were acknowledged; the journal has {at}"
                return
            end = min(self.goal, at + int(CONNECTION_S * self.rate))
            began, first = time.monotonic(), at
            while at < end and not self._closed.is_set():
                step = min(end, at + max(1, int(SLICE_S * self.rate)))
                connection.sendall(b"".join(map(self.message, range(at, step))))
                at = step
                self._closed.wait(max(0.0, began + (at - first) / self.rate - time.monotonic()))
            connection.shutdown(socket.SHUT_WR)
            if connection.recv(1) == b"":
                self.acknowledged = at

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join(timeout=ANSWER_S)
