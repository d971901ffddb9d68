"""Checks that log, positions and files of an outbox belong together, before anything is delivered."""

import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from wallaroo.message.frame import read_header
from wallaroo_runtime.storage.outbox.live import OUTPUT, LiveReader, first_offset
from wallaroo_runtime.storage.outbox.live_state import LastSegment, read_last
from wallaroo_runtime.storage.outbox.log import Base, LogReader, OutboxFile, OutboxRecord, damaged
from wallaroo_runtime.storage.outbox.position import SinkPosition, read_position

_BLOCK_BYTES = 1024 * 1024


def check_outbox(directory: Path, ports: Collection[int]) -> None:
    """Compare the positions of sinks with the log, and verify the files of undelivered output.

    An egress may deliver during the check, but no process may publish.

    Args:
        directory: The outbox.
        ports: Ports of the sinks that the outbox serves.

    Raises:
        RunError: R698 if something is missing, was changed or belongs to another outbox.
    """
    reader = LogReader(directory)
    records: list[OutboxRecord] = []
    begin: Base | None = None
    for record in reader.records():
        begin = begin or _before(record, reader.base)
        records.append(record)
    total = reader.base
    reader.close()
    positions = {port: read_position(directory, port) for port in ports}  # read first: an egress moves them
    live = read_last(directory)
    if total.live > live.end:
        raise damaged(directory, f"its live log ends at {live.end}; record {total.number - 1} comes after {total.live}")
    for port in sorted(ports):
        if total.messages[port] + live.state.messages[port]:
            _check_port(directory, port, begin or total, records, total)
            _check_live(directory, port, positions[port], live)


def _before(record: OutboxRecord, after: Base) -> Base:
    """Return the totals before a record: `after`, the totals after it, without the messages of the record."""
    base = Base(record.number, messages=after.messages.copy())
    for file in record.files:
        base.messages[file.port] -= file.messages
    return base


def _check_port(directory: Path, port: int, begin: Base, records: list[OutboxRecord], total: Base) -> None:
    name, position = f"position-{port}", read_position(directory, port)
    if not (directory / name).exists():
        raise damaged(directory, f"{name} is missing; {total.messages[port]} messages were published for that sink")
    if position.record > total.number:
        raise damaged(directory, f"{name} is at record {position.record}; the log ends before record {total.number}")
    counted = position.messages - position.live_messages
    _check_count(directory, _counts(port, begin, records, position), counted, f"{name}: record {position.record}")
    for record, index, file in _files(port, records):
        if (record, index) >= (position.record, position.file):
            _check_file(directory, port, (record, index), file)


def _check_count(directory: Path, expected: tuple[int, int], counted: int, name: str) -> None:
    """Refuse a position that counts fewer or more messages than the log has before it."""
    low, high = expected
    if not low <= counted <= high:
        counts = f"{low}" if low == high else f"{low} to {high}"
        raise damaged(directory, f"{name}: it counts {counted} messages before; the log {counts}")


def _check_live(directory: Path, port: int, position: SinkPosition, live: LastSegment) -> None:
    """Compare the position of a sink with the live log, and verify the undelivered entries."""
    if position.live > live.end:
        raise damaged(directory, f"position-{port} is at {position.live} of the live log, which ends at {live.end}")
    counts: list[int] = []
    at_first = 0
    reader = LiveReader(directory, max(position.live, first_offset(directory)))
    for entry in reader.entries(live.end):
        is_mine = entry.kind == OUTPUT and entry.port == port
        if (is_mine or entry.kind != OUTPUT) and not entry.fits():
            raise damaged(directory, f"its live log at {entry.offset}: the entry does not fit its checksum")
        if is_mine:
            counts.append(read_header(entry.content).count - entry.skip)
            at_first = counts[0] if entry.offset == position.live else at_first
    reader.close()
    before = live.state.messages[port] - sum(counts)
    name = f"position-{port}: {position.live} of the live log"
    _check_count(directory, (before, before + at_first), position.live_messages, name)


def _files(port: int, records: list[OutboxRecord]) -> Iterator[tuple[int, int, OutboxFile]]:
    for record in records:
        for index, file in enumerate(record.files):
            if file.port == port:
                yield record.number, index, file


def _counts(port: int, begin: Base, records: list[OutboxRecord], position: SinkPosition) -> tuple[int, int]:
    """Return the least and highest number of messages before a position; they differ if it is within a file."""
    low = begin.messages[port]
    at = (position.record, position.file)
    for record, index, file in _files(port, records):
        if (record, index) == at:
            return low, low + file.messages
        if (record, index) > at:
            break
        low += file.messages
    return low, low


def _check_file(directory: Path, port: int, place: tuple[int, int], file: OutboxFile) -> None:
    path, crc, size = directory / file.name, 0, 0
    try:
        with path.open("rb") as opened:
            while block := opened.read(_BLOCK_BYTES):
                crc, size = zlib.crc32(block, crc), size + len(block)
    except FileNotFoundError:
        position = read_position(directory, port)
        if place < (position.record, position.file):
            return  # the file was delivered and removed during the check
        raise damaged(directory, f"{file.name} is missing; it is not delivered yet") from None
    if size != file.bytes:
        raise damaged(directory, f"{file.name} has {size} bytes; expected {file.bytes}")
    if crc != file.crc32:
        raise damaged(directory, f"{file.name} has checksum {crc:08x}; expected {file.crc32:08x}")
