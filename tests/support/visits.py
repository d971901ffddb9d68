"""What must come of messages and visits of the application in `visited`, one after the other; and who sends them."""

import socket
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from string import ascii_lowercase

from support.run import Receiver, framed
from support.throttle import Throttle
from support.visited.app import VISITS
from wallaroo.message.frame import VISIT_PORT, read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as worker
from wallaroo_runtime.storage.journal.reader import JournalReader

Event = tuple[str, str]  # a key and a value, or a visit and its metadata


class Reference:
    """The states of the keys, what was given for each, and what visits came to."""

    def __init__(self) -> None:
        self.first: dict[str, list[int]] = {}
        self.second: defaultdict[str, list[int]] = defaultdict(list)
        self.given: defaultdict[str, list[str]] = defaultdict(list)
        self.letters: list[tuple[str, int]] = []
        self.visited: list[tuple[int, int]] = []

    def take(self, event: Event, sequence: int = 0) -> None:
        """Take the next event."""
        if event[0] in VISITS:
            self._visit(*event, sequence)
        elif event[1] != "peek":
            self.first.setdefault(event[0], []).append(int(event[1]))
            self._pass(event[0], f"{event[0]} got {event[1]}")

    def count(self) -> int:
        """Return how many lines were given."""
        return sum(map(len, self.given.values()))

    def _pass(self, key: str, text: str) -> None:
        self.second[key].append(1)
        self.given[key].append(f"{text} {len(self.second[key])}")

    def _visit(self, name: str, metadata: str, sequence: int) -> None:
        count, failed = len(self.first), 0
        if name == "both":  # comes to the second step before what the first one makes of it
            count += len(self.second)
            for key in sorted(self.second):
                self.second[key].append(1)
                self.given[key].append(f"{key} second {len(self.second[key])}")
        for key in sorted(self.first):
            values = self.first[key]
            shown = f"{key} {name} {values}"
            if name == "show":
                self._pass(key, shown)
                continue
            after = [*values, int(metadata)]
            if name == "boom" and sum(after) % 3 == 0:
                failed += 1
                self.letters.append((key, sequence))
                continue
            self.first[key] = after
            self._pass(key, shown)
            if name == "odd" and len(after) % 2:
                self._pass(key, shown)
                del self.first[key]
        self.visited.append((count, failed))


class Messages(Throttle):
    """Sends drawn messages, also while the gateway dies."""

    def _make(self) -> bytes:
        return framed([f"{self._random.choice(ascii_lowercase)}={self._random.randint(1, 3)}".encode()])


class WholeLines(Receiver):
    """Keeps no line within which a connection ended: the next one begins with a whole message."""

    def _take(self, connection: socket.socket) -> None:
        super()._take(connection)
        with self.lock:
            data = b"".join(self.blocks)
            self.blocks = [data[: data.rfind(b"\n") + 1]]


def journaled(directory: Path) -> Iterator[tuple[int, bytes]]:
    """Yield what a journal has that has lost no segment: the id of a visit or 0, and the visit or the message."""
    reader = JournalReader(directory)
    for data in reader.read(0, reader.end().offset):
        for header, at, _ in split_frames(data):
            frame = read_frame(data, at)
            if header.port == VISIT_PORT:
                (visit,) = frame.values()
                yield worker.Visit.FromString(visit).id, visit
                continue
            yield from ((0, message) for message in unframed(frame.data))


def unframed(data: bytes) -> Iterator[bytes]:
    """Yield what four bytes of length are in front of."""
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : end]
        at = end


class Past:
    """What the journal of a run has, and what must come of it.

    Args:
        journal: Its directory; no segment was released.

    Attributes:
        messages: In order.
        visits: Keys and failed ones of each visit, by its id.
    """

    def __init__(self, journal: Path) -> None:
        self.reference, self.messages, ids = Reference(), list[bytes](), list[int]()
        for number, value in journaled(journal):
            if number:
                visit = worker.Visit.FromString(value)
                ids.append(number)
                self.reference.take((visit.name, visit.metadata.decode()))
                continue
            self.messages.append(value)
            key, _, gets = value.decode().partition("=")
            self.reference.take((key, gets))
        self.visits = dict(zip(ids, self.reference.visited, strict=True))


def by_key(found: Iterable[str], *, may_repeat: bool = False) -> dict[str, list[str]]:
    """Return the lines of each key, in order.

    `may_repeat`: an egress that was killed sends again what it had not recorded as delivered; that is left out here, if
    it is the same. The last word of a line is its number among those of its key.
    """
    given: defaultdict[str, list[str]] = defaultdict(list)
    for line in found:
        mine, number = given[line[0]], int(line.rpartition(" ")[2])
        if not (may_repeat and number <= len(mine) and mine[number - 1] == line):
            mine.append(line)
    return given
