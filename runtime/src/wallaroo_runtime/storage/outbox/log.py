"""The log of the outbox: a line (record) for each published micro-batch, with its files."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.durable.record import pack_line, unpack_line
from wallaroo_runtime.errors import RunError

LOG_NAME = "log"
_BLOCK_BYTES = 1024 * 1024


def damaged(directory: Path, reason: object) -> RunError:
    """Return the error for an outbox that lost or changed output (R698)."""
    return RunError.of("R698", what=f"outbox {directory}", reason=reason)


@dataclass(frozen=True, slots=True)
class OutboxFile:
    """A published file: output of one partition of Spark for one sink, or its dead letters."""

    port: int
    partition: int
    name: str
    bytes: int
    messages: int
    crc32: int  # checksum of the whole file


@dataclass(frozen=True, slots=True)
class OutboxRecord:
    """A published micro-batch; `number` counts all records from 0, removed ones included.

    `offsets` is Spark's plan of the micro-batch, as the file in its checkpoint has it; empty if it is not known. `live`
    is the safe end of the live log at publication. Entries before that end are delivered before the record's files.
    """

    number: int
    query: str
    batch: int
    files: tuple[OutboxFile, ...]
    offsets: str = ""
    live: int = 0


@dataclass(slots=True)
class Base:
    """The totals of all records (lines) before one record of a log, including records that the log no longer has.

    Attributes:
        number: Number of the next record.
        batches: Highest batch of each query.
        messages: Number of messages of each port.
        offsets: The `offsets` of the last record.
        live: The `live` of the last record.
    """

    number: int = 0
    batches: dict[str, int] = field(default_factory=dict)
    messages: Counter[int] = field(default_factory=Counter)
    offsets: str = ""
    live: int = 0

    def add(self, record: OutboxRecord) -> None:
        """Add the next record."""
        self.number = record.number + 1
        self.batches[record.query] = max(record.batch, self.batches.get(record.query, -1))
        self.offsets, self.live = record.offsets, record.live
        for file in record.files:
            self.messages[file.port] += file.messages

    def to_json(self) -> dict[str, Any]:
        """Return the object for the first line of a log whose beginning is removed."""
        messages = {str(port): count for port, count in self.messages.items()}
        value = {"base": self.number, "batches": self.batches, "messages": messages, "offsets": self.offsets}
        return value | ({"live": self.live} if self.live else {})

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Base":
        """Read the form that `to_json` wrote."""
        messages = Counter({int(port): count for port, count in value["messages"].items()})
        return cls(value["base"], dict(value["batches"]), messages, value.get("offsets", ""), value.get("live", 0))


def record_of(value: dict[str, Any], number: int) -> OutboxRecord:
    """Return the record of a line of the log; `value` is the parsed line."""
    files = tuple(OutboxFile(**file) for file in value["files"])
    return OutboxRecord(number, value["query"], value["batch"], files, value.get("offsets", ""), value.get("live", 0))


@dataclass(frozen=True, slots=True)
class Published:
    """The last micro-batch that was published to an outbox.

    Attributes:
        query: Id of Spark's query; empty if nothing was published yet.
        batch: Number of the micro-batch; -1 if nothing was published yet.
        offsets: Spark's plan of the micro-batch; empty if it is not known.
    """

    query: str = ""
    batch: int = -1
    offsets: str = ""

    @classmethod
    def of(cls, base: Base) -> "Published":
        """Return the last micro-batch of a log that was read to its end."""
        query = next(reversed(base.batches), "")
        return cls(query, base.batches.get(query, -1), base.offsets)


class LogReader:
    """Follows the log of an outbox, while another process appends to the log or replaces it by a shorter one.

    Args:
        directory: The outbox.
        number: Number of the first record to return; earlier records are only added to `base`.
    """

    def __init__(self, directory: Path, number: int = 0) -> None:
        self._path = directory / LOG_NAME
        self._name = str(self._path)  # a string, not a path: each message needs it
        self._descriptor = -1
        self._identity: tuple[int, int] | None = None
        self._at = 0
        self._first = number
        self.base = Base()

    def records(self) -> Iterator[OutboxRecord]:
        """Yield the records that have come since the last call.

        Raises:
            RunError: R698 if a whole line is damaged.
        """
        while True:
            yield from self._follow()
            if not self._reopen():
                return

    def changed(self) -> tuple[int, int, int]:
        """Return a value that differs whenever the log has changed. The call is cheap."""
        try:
            stat = os.stat(self._name)
        except FileNotFoundError:
            return (0, 0, 0)
        return (stat.st_dev, stat.st_ino, stat.st_size)

    def close(self) -> None:
        """Close the file. The next call of `records` opens it again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._identity, self._at = -1, None, 0

    def _reopen(self) -> bool:
        """Open the log if it exists and is another file than the open file. Return whether it was opened."""
        device, inode, _ = self.changed()
        if not inode or self._identity == (device, inode):
            return False
        self.close()
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        stat = os.fstat(self._descriptor)
        self._identity = (stat.st_dev, stat.st_ino)
        self._first = max(self._first, self.base.number)
        self.base = Base()
        return True

    def _follow(self) -> Iterator[OutboxRecord]:
        size = _BLOCK_BYTES
        while self._descriptor >= 0 and (block := os.pread(self._descriptor, size, self._at)):
            whole = block.rfind(b"\n") + 1
            if not whole and len(block) < size:
                return  # the line is being written, or is torn and will be cut
            size = _BLOCK_BYTES if whole else 2 * size
            for line in block[:whole].splitlines():
                self._at += len(line) + 1
                record = self._take(line)
                if record is not None and record.number >= self._first:
                    yield record

    def _take(self, line: bytes) -> OutboxRecord | None:
        value = unpack_line(line)
        if value is None:
            raise damaged(self._path.parent, f"record {self.base.number} of its log does not fit its checksum")
        if "base" in value:
            self.base = Base.from_json(value)
            return None
        record = record_of(value, self.base.number)
        self.base.add(record)
        return record


def read_base(directory: Path) -> Base:
    """Return the totals of all records of an outbox's log.

    Raises:
        RunError: R698 if the log is damaged.
    """
    reader = LogReader(directory)
    for _ in reader.records():
        continue
    reader.close()
    return reader.base


def cut_delivered(directory: Path, positions: dict[int, int]) -> bytes | None:
    """Return the log without its first records, which are delivered; None if this removes less than half of the log.

    Args:
        directory: The outbox.
        positions: Number of the record that is next to deliver, by port.
    """
    content = (directory / LOG_NAME).read_bytes()
    base, at = Base(), 0
    while at < len(content):
        end = content.index(b"\n", at)
        value = unpack_line(content[at:end])
        if value is None:
            raise damaged(directory, f"record {base.number} of its log does not fit its checksum")
        if "base" in value:
            base = Base.from_json(value)
        else:
            record = record_of(value, base.number)
            ports = {file.port for file in record.files} - {DEAD_LETTER_PORT}
            if any(positions.get(port, 0) <= record.number for port in ports):
                break
            base.add(record)
        at = end + 1
    return None if 2 * at < len(content) else pack_line(base.to_json()) + content[at:]
