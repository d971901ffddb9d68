"""Reads the output that one sink has to deliver, in order, from a position on."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from wallaroo.message.frame import HEADER_BYTES, Frame, FrameError, read_frame, read_header
from wallaroo_runtime.storage.outbox.live import OUTPUT, Entry, LiveReader, first_offset
from wallaroo_runtime.storage.outbox.log import LogReader, OutboxFile, OutboxRecord, damaged
from wallaroo_runtime.storage.outbox.position import SinkPosition


@dataclass(slots=True)
class Piece:
    """The messages of one frame for a sink. A piece without data only moves the position past output of other sinks.

    Attributes:
        lengths: Lengths of the messages in `data`.
        before: Position of the sink before the piece.
        after: Position of the sink after the piece.
        finished: File of which this is the last piece; None if it is not the last piece of a file.
        frame: Frame that the messages come from.
        ends: Ends of the messages in `data`; empty until `position` needs them.
        is_live: Whether the messages come from the live log.
    """

    data: bytes
    lengths: Sequence[int]
    before: SinkPosition
    after: SinkPosition
    finished: OutboxFile | None = None
    frame: Frame | None = field(default=None, repr=False)
    ends: list[int] = field(default_factory=list, repr=False)
    is_live: bool = False

    def position(self, size: int) -> SinkPosition:
        """Return the position of the sink after the first `size` bytes of this piece; only whole messages count."""
        if size <= 0:
            return self.before  # empty messages at the beginning are delivered with the message after them
        if not self.ends:
            self.ends = list(accumulate(self.lengths))
        count = bisect_right(self.ends, size)
        if not count or not self.ends[count - 1]:
            return self.before
        return (_moved_live if self.is_live else _moved)(self.before, count, self.ends[count - 1])


def _moved_live(position: SinkPosition, count: int, size: int) -> SinkPosition:
    return replace(
        position,
        live_byte=position.live_byte + size,
        live_messages=position.live_messages + count,
        messages=position.messages + count,
        total_bytes=position.total_bytes + size,
    )


def _moved(position: SinkPosition, count: int, size: int) -> SinkPosition:
    return replace(
        position,
        byte=position.byte + size,
        messages=position.messages + count,
        total_bytes=position.total_bytes + size,
    )


class Feed:
    """Reads the output of one sink from an outbox: from published files, and from the live log of real-time mode.

    Args:
        directory: The outbox.
    """

    def __init__(self, directory: Path, port: int, start: SinkPosition) -> None:
        self._directory, self._port = directory, port
        self._log = LogReader(directory, start.record)
        self._live = LiveReader(directory, start.live or first_offset(directory))
        self._at = start
        self._pieces: Iterator[Piece] = iter(())

    def next(self) -> Piece | None:
        """Return the next piece (messages of one frame); None if the outbox has none now.

        Raises:
            RunError: R698 if the outbox is damaged.
        """
        piece = next(self._pieces, None)
        if piece is None:
            self._pieces = self._read()
            piece = next(self._pieces, None)
        return piece

    def several(self, size: int, messages: float = math.inf) -> list[Piece]:
        """Return the next pieces that the outbox has now; stop when they reach `size` bytes or `messages` messages.

        Raises:
            RunError: R698 if the outbox is damaged.
        """
        pieces: list[Piece] = []
        while size > 0 and messages > 0 and (piece := self.next()) is not None:
            pieces.append(piece)
            size, messages = size - len(piece.data), messages - len(piece.lengths)
        return pieces

    def close(self) -> None:
        """Close the logs."""
        self._log.close()
        self._live.close()

    def _read(self) -> Iterator[Piece]:
        for record in self._log.records():
            yield from self._entries(record.live)
            yield from self._record(record)
        yield from self._entries(None)

    def _entries(self, end: int | None) -> Iterator[Piece]:
        """Yield the sink's pieces of the live log up to the offset `end`; all existing pieces if `end` is None."""
        for entry in self._live.entries(end):
            if entry.kind == OUTPUT and entry.port == self._port:
                yield self._live_piece(entry)
        if self._live.offset > self._at.live:  # a piece without data moves the position past entries of other ports
            before, self._at = self._at, replace(self._at, live=self._live.offset, live_byte=0)
            yield Piece(b"", (), before, self._at)

    def _live_piece(self, entry: Entry) -> Piece:
        try:
            frame = read_frame(entry.content)
        except FrameError as error:
            raise damaged(self._directory, f"its live log at {entry.offset}: {error}") from error
        skip = sum(frame.lengths[: entry.skip]) if entry.skip else 0
        data, lengths = frame.data[skip:], frame.lengths[entry.skip :]
        before = self._at if entry.offset == self._at.live else replace(self._at, live=entry.offset, live_byte=0)
        data, lengths = _without(data, lengths, before.live_byte)
        self._at = replace(_moved_live(before, len(lengths), len(data)), live=entry.end, live_byte=0)
        return Piece(data, lengths, before, self._at, frame=frame, is_live=True)

    def _record(self, record: OutboxRecord) -> Iterator[Piece]:
        if record.number != self._at.record:
            # Records in between were cut from the log, since they had nothing undelivered for this sink.
            self._at = replace(self._at, record=record.number, file=0, byte=0)
        for index, file in enumerate(record.files):
            if file.port == self._port and index >= self._at.file:
                self._at = replace(self._at, file=index, byte=self._at.byte if index == self._at.file else 0)
                yield from self._file(file)
        before, self._at = self._at, replace(self._at, record=record.number + 1, file=0, byte=0)
        yield Piece(b"", (), before, self._at)

    def _file(self, file: OutboxFile) -> Iterator[Piece]:
        index, skip = self._at.file, self._at.byte
        for values, is_last in self._frames(file):
            size = len(values.data)
            if skip and skip >= size:
                skip -= size
                continue
            data, lengths = _without(values.data, values.lengths, skip)
            skip, before = 0, self._at
            after = _moved(before, len(lengths), len(data))
            self._at = replace(after, file=index + 1, byte=0) if is_last else after
            yield Piece(data, lengths, before, self._at, file if is_last else None, values)
        if self._at.file == index:
            # Everything in the file was delivered, but the position past the file was not recorded.
            before, self._at = self._at, replace(self._at, file=index + 1, byte=0)
            yield Piece(b"", (), before, self._at, file)

    def _frames(self, file: OutboxFile) -> Iterator[tuple[Frame, bool]]:
        """Yield each frame of a file, and whether it is the last frame."""
        at = 0
        try:
            with (self._directory / file.name).open("rb") as opened:
                while at < file.bytes:
                    data = opened.read(HEADER_BYTES)
                    data += opened.read(read_header(data).body_bytes)
                    frame = read_frame(data)
                    at += len(data)
                    yield frame, at >= file.bytes
        except (OSError, FrameError) as error:
            raise damaged(self._directory, f"{file.name} at {at}: {error}") from error


def _without(data: bytes, lengths: Sequence[int], skip: int) -> tuple[bytes, Sequence[int]]:
    """Remove delivered messages from a piece: those in the first `skip` bytes, and empty ones directly after them."""
    if not skip:
        return data, lengths
    count = bisect_right(list(accumulate(lengths)), skip)
    return data[skip:], lengths[count:]
