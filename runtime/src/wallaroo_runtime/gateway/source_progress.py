"""Finds where sources continue after a restart: after a generator's last message, or a stream's last id or offset.

A connector source has streams, whose points are the ids of the last messages. The streams of a Kafka source are the
partitions of its topic, and their points are the next offsets.

The gateway reads these facts from the frames of the journal, so that they never disagree with it. Before a segment is
removed, a small file gets the facts of its frames.
"""

import struct
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wallaroo.message.frame import DEAD_LETTER_PORT, FrameHeader, read_frame, split_frames
from wallaroo.worker._proto.worker_pb2 import DeadLetter
from wallaroo_runtime.durable.record import read_record, write_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.segment import list_segments

NAME = "past"
POINT_HEADER = b"wallaroo.point"
_POINT = struct.Struct(">QQ")
_POINT_START = struct.pack("<H", len(POINT_HEADER)) + POINT_HEADER + struct.pack("<I", _POINT.size)


def point_headers(count: int, points: Iterable[tuple[int, tuple[int, int]]]) -> list[bytes]:
    """Return headers for the messages of a frame. They record the points (id or offset) of streams in the journal.

    Args:
        count: Number of messages.
        points: Streams, each with the index of a message and the point of the stream after that message.
    """
    headers = [b""] * count
    for stream, (index, point) in points:
        headers[index] = _POINT_START + _POINT.pack(stream, point)
    return headers


def _has_point(headers: bytes) -> bool:
    """Return whether the last header of a message is a point of a stream."""
    return headers[-_POINT.size - len(_POINT_START) : -_POINT.size] == _POINT_START


@dataclass(frozen=True, slots=True)
class Last:
    """The last message of a generator, and the encoding of its frame."""

    value: bytes
    encoding: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """The content of the file `past`: last messages and points (ids, offsets) from the journal before an offset."""

    offset: int
    values: Mapping[int, Last]
    points: Mapping[int, Mapping[int, int]]
    topics: Mapping[int, str]


class SourceProgress:
    """The places at which sources continue after a restart. They are read from the journal's frames up to an offset.

    Args:
        directory: The journal; its writer must exist already.
        generators: Ports of generator sources.
        connectors: Ports of connector sources.
        topics: Ports of Kafka sources, whose streams are partitions.

    Attributes:
        values: Last message of each generator, by port.
        points: Last point of each stream, by port of the source.
        topics: Id of a Kafka source's topic, by port, if the brokers gave an id.

    Raises:
        RunError: R698 if the file or the journal is damaged.
    """

    def __init__(
        self, directory: Path, generators: Iterable[int], connectors: Iterable[int], topics: Iterable[int] = ()
    ) -> None:
        self._directory, self._path = directory, directory / NAME
        self._generators, self._connectors = frozenset(generators), frozenset(connectors)
        self._streams = self._connectors | {*topics}
        self._is_needed = bool(self._generators or self._streams)
        self._offset = 0
        self._noted: deque[tuple[int, dict[tuple[int, int], int]]] = deque()  # of segments: base, points
        self.values: dict[int, Last] = {}
        self.points: dict[int, dict[int, int]] = {port: {} for port in self._streams}
        self.topics: dict[int, str] = {}
        segments = list_segments(directory)
        begin = segments[0].base if segments else 0
        self._load()
        if self._is_needed and self._offset < begin:
            reason = f"{NAME} ends at {self._offset}; the first segment begins at {begin}"
            raise RunError.of("R698", what=f"journal {self._path} at offset {self._offset}", reason=reason)

    def advance(self, end: int) -> None:
        """Read the journal up to an offset, and note the last message of generators and the points of streams."""
        segments = list_segments(self._directory)
        start = max(self._offset, segments[0].base if segments else 0)
        for data in JournalReader(self._directory).read(start, end) if self._is_needed else ():
            for header, at, _ in split_frames(data):
                self._fold(header, data, at)
        self._offset = max(self._offset, end)

    def note(self, base: int, points: Mapping[tuple[int, int], int]) -> None:
        """Note the points of a frame that is now written, so that `move` need not read the frame again.

        Args:
            base: Offset of the segment that has the frame.
            points: Points by port of the source and stream.
        """
        if not self._noted or self._noted[-1][0] != base:
            self._noted.append((base, {}))
        self._noted[-1][1].update(points)

    def move(self, offset: int) -> None:
        """Add last messages and points up to the end of a journal file. Read frames only if sources need this."""
        if self._generators or self._connectors:
            self.advance(offset)
        while self._noted and self._noted[0][0] < offset:
            for (port, stream), point in self._noted.popleft()[1].items():
                self.points[port][stream] = point
        self._offset = max(self._offset, offset)

    def _fold(self, header: FrameHeader, data: bytes, at: int) -> None:
        if not header.count:
            return
        if header.port in self._generators:
            self.values[header.port] = Last(read_frame(data, at).values()[-1], header.encoding)
        elif header.port == DEAD_LETTER_PORT:  # a record was too large
            letter = DeadLetter.FromString(read_frame(data, at).values()[0])
            self.points.setdefault(letter.port, {})[letter.origin.partition] = letter.origin.offset + 1
        elif header.port in self._streams:
            for value in filter(_has_point, read_frame(data, at).headers):
                stream, point = _POINT.unpack(value[-_POINT.size :])
                self.points[header.port][stream] = point

    def save(self) -> None:
        """Write last messages and points to the file `past`, so that they survive a loss of power."""
        write_record(self._path, _Kept(self._offset, self.values, self.points, self.topics))

    def _load(self) -> None:
        if (kept := read_record(self._path, _Kept)) is None:
            return
        self._offset = kept.offset
        self.values = {port: value for port, value in kept.values.items() if port in self._generators}
        self.topics = {port: topic for port, topic in kept.topics.items() if port in self._streams}
        self.points |= {port: dict(points) for port, points in kept.points.items() if port in self._streams}
