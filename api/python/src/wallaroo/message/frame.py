"""Frames: many messages as one byte string, with their keys, sequences and times in columns.

This module reads and writes the layout that `topology-schema/SPECIFICATION.md`, section 2, describes. All functions
work on whole columns: loops over messages are left to the standard library where possible.
"""

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

MAGIC = b"WFR1"
HEADER = struct.Struct("<4sBBHIIQqII")
HEADER_BYTES = HEADER.size
MAX_FRAME_BYTES = 64 * 1024 * 1024
MAX_BODY_BYTES = MAX_FRAME_BYTES - HEADER_BYTES

KEYS, SEQUENCES, TIMESTAMPS, HEADERS, ABSENT = 1, 2, 4, 8, 16
PLAIN, FRAMED = 0, 1
DEAD_LETTER_PORT = 65535
TICK_PORT = 65534
VISIT_PORT = 65533
CONTROL_PORTS = frozenset({TICK_PORT, VISIT_PORT})  # ports of ticks and visits, which go to all buckets of a stage

_U32 = struct.Struct("<I")
_TYPECODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


class FrameError(ValueError):
    """A frame is damaged. The text describes the damage. Code: W410."""


@dataclass(slots=True)
class FrameHeader:
    """The header of a frame: its first 40 bytes.

    Attributes:
        port: Number of the source, step or sink that the messages come from or go to.
        count: Number of messages.
        sequence: The smallest sequence number of the messages.
        flags: The columns of the body: a sum of `KEYS` to `ABSENT`.
        encoding: Form of the values: `PLAIN`, `FRAMED` (as in a TCP stream, with headers or line ends), or a worker's.
        timestamp_ms: The smallest time of the messages, in milliseconds since 1970.
        body_bytes: Length of the body; writers compute it.
    """

    port: int
    count: int
    sequence: int
    flags: int = 0
    encoding: int = PLAIN
    timestamp_ms: int = 0
    body_bytes: int = 0


@dataclass(slots=True)
class Frame:
    """A frame whose columns have been read.

    Attributes:
        header: The frame's header.
        keys: The distinct keys, in order of first use.
        key_indexes: For each message the position of its key in `keys`; empty without keys.
        sequences: For each message the difference to `header.sequence`; empty without the column.
        timestamps: For each message the difference to `header.timestamp_ms`; empty without the column.
        headers: For each message its encoded headers; empty without the column.
        absent: Positions of messages without a value.
        lengths: Lengths of the values; empty for framed values.
        data: The bytes of all values, one after the other.
    """

    header: FrameHeader
    keys: list[bytes] = field(default_factory=list)
    key_indexes: Sequence[int] = ()
    sequences: Sequence[int] = ()
    timestamps: Sequence[int] = ()
    headers: list[bytes] = field(default_factory=list)
    absent: list[int] = field(default_factory=list)
    lengths: Sequence[int] = ()
    data: bytes = b""

    def values(self) -> list[bytes]:
        """Return the values, one `bytes` per message."""
        return cut(self.data, self.lengths)

    def sequence_of(self, index: int) -> int:
        """Return the sequence number of the message at `index`."""
        return self.header.sequence + (self.sequences[index] if self.sequences else index)

    def times(self) -> Sequence[int]:
        """Return the time of each message in milliseconds since 1970."""
        first = self.header.timestamp_ms
        return [first + each for each in self.timestamps] if self.timestamps else [first] * self.header.count


def cut(data: bytes, lengths: Iterable[int]) -> list[bytes]:
    """Cut data into consecutive parts of the given lengths."""
    return [data[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]


def column(numbers: Sequence[int]) -> bytes:
    """Return a column of unsigned integers as bytes: each as 1, 2, 4 or 8 bytes, as few as the largest needs."""
    top = max(numbers, default=0)
    width = 1 if top < 1 << 8 else 2 if top < 1 << 16 else 4 if top < 1 << 32 else 8
    values = array(_TYPECODES[width], numbers)
    if sys.byteorder == "big":
        values.byteswap()
    return bytes((width,)) + values.tobytes()


def absent_bitmap(count: int, absent: Iterable[int]) -> bytes:
    """Return a bitmap with one bit for each of `count` messages: 1 if the message has no value."""
    bits = bytearray((count + 7) // 8)
    for index in absent:
        bits[index >> 3] |= 1 << (index & 7)
    return bytes(bits)


def write_frame(header: FrameHeader, body: Sequence[bytes]) -> bytes:
    """Return a frame as bytes: its header, with computed length and checksum, and the parts of its body.

    Raises:
        FrameError: The body is longer than a frame may be.
    """
    size = sum(map(len, body))
    if size > MAX_BODY_BYTES:
        msg = f"the body has {size} bytes; at most {MAX_BODY_BYTES} fit into a frame"
        raise FrameError(msg)
    numbers = (header.flags, header.encoding, header.port, header.count, size, header.sequence, header.timestamp_ms)
    start = HEADER.pack(MAGIC, *numbers, 0, 0)[:36]
    checksum = zlib.crc32(start)
    for part in body:
        checksum = zlib.crc32(part, checksum)
    return b"".join((start, _U32.pack(checksum), *body))


def encode_frame(
    values: Sequence[bytes],
    *,
    port: int,
    sequence: int = 0,
    encoding: int = PLAIN,
    timestamp_ms: int = 0,
    **columns: Sequence[Any],
) -> bytes:
    """Return a frame of the values as bytes. `columns` are parameters of `joined_body`; empty columns are left out.

    Example:
        >>> frame = encode_frame([b"a", b"bc"], port=3, sequence=10)
        >>> read_frame(frame).values()
        [b'a', b'bc']
    """
    flags, body = encode_body(values, **columns)
    return write_frame(FrameHeader(port, len(values), sequence, flags, encoding, timestamp_ms), body)


def encode_body(values: Sequence[bytes], **columns: Sequence[Any]) -> tuple[int, list[bytes]]:
    """Return the flags and the parts of a frame's body, from separate values. For the columns see `joined_body`."""
    return joined_body(list(map(len, values)), b"".join(values), **columns)


def joined_body(
    lengths: Sequence[int],
    data: bytes,
    *,
    keys: Sequence[bytes] = (),
    key_indexes: Sequence[int] = (),
    sequences: Sequence[int] = (),
    timestamps: Sequence[int] = (),
    headers: Sequence[bytes] = (),
    absent: Sequence[int] = (),
) -> tuple[int, list[bytes]]:
    """Return the flags and the parts of a frame's body. `data` has the bytes of all values, one after the other."""
    flags = (
        (KEYS if keys else 0)
        | (SEQUENCES if sequences else 0)
        | (TIMESTAMPS if timestamps else 0)
        | (HEADERS if headers else 0)
        | (ABSENT if absent else 0)
    )
    body: list[bytes] = []
    if keys:
        body += [_U32.pack(len(keys)), column(list(map(len, keys))), b"".join(keys), column(key_indexes)]
    if sequences:
        body.append(column(sequences))
    if timestamps:
        body.append(column(timestamps))
    if headers:
        body += [column(list(map(len, headers))), b"".join(headers)]
    if absent:
        body.append(absent_bitmap(len(lengths), absent))
    return flags, [*body, column(lengths), data]


def read_header(data: bytes | memoryview, offset: int = 0) -> FrameHeader:
    """Read the header at `offset` without a check of the checksum.

    Raises:
        FrameError: These bytes do not begin a frame.
    """
    if len(data) - offset < HEADER_BYTES:
        msg = f"{len(data) - offset} bytes are left; a header has {HEADER_BYTES}"
        raise FrameError(msg)
    magic, flags, encoding, port, count, size, sequence, timestamp, reserved, _ = HEADER.unpack_from(data, offset)
    if magic != MAGIC:
        msg = f"magic is {bytes(magic)!r}; expected {MAGIC!r}"
        raise FrameError(msg)
    if flags & ~31 or reserved:
        msg = f"flags {flags} or reserved {reserved} are not known"
        raise FrameError(msg)
    if size > MAX_BODY_BYTES:
        msg = f"the header announces {size} bytes; at most {MAX_BODY_BYTES} are possible"
        raise FrameError(msg)
    return FrameHeader(port, count, sequence, flags, encoding, timestamp, size)


def check_frame(data: bytes | memoryview, offset: int = 0) -> FrameHeader:
    """Read the header at `offset` and verify length and checksum.

    Raises:
        FrameError: The frame is cut or damaged.
    """
    header = read_header(data, offset)
    end = offset + HEADER_BYTES + header.body_bytes
    if end > len(data):
        msg = f"the frame has {end - offset} bytes; {len(data) - offset} are left"
        raise FrameError(msg)
    view = memoryview(data)
    actual = zlib.crc32(view[offset + HEADER_BYTES : end], zlib.crc32(view[offset : offset + 36]))
    (expected,) = _U32.unpack_from(data, offset + 36)
    if actual != expected:
        msg = f"checksum is {actual:#010x}; the header has {expected:#010x}"
        raise FrameError(msg)
    return header


def split_frames(data: bytes) -> Iterator[tuple[FrameHeader, int, int]]:
    """Check the frames in `data`, one after the other, and yield header, start and end of each.

    Raises:
        FrameError: A frame is cut or damaged.
    """
    offset = 0
    while offset < len(data):
        header = check_frame(data, offset)
        end = offset + HEADER_BYTES + header.body_bytes
        yield header, offset, end
        offset = end


class _Body:
    """Reads the sections of a frame's body from front to back, and never reads past the end of the body."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self.data, self.at, self.end = data, start, end

    def take(self, size: int) -> bytes:
        if size > self.end - self.at:
            msg = f"a section of {size} bytes; {self.end - self.at} are left in the body"
            raise FrameError(msg)
        start, self.at = self.at, self.at + size
        return self.data[start : self.at]

    def column(self, count: int) -> Sequence[int]:
        width = self.take(1)[0]
        if width not in _TYPECODES:
            msg = f"a column of width {width}; expected 1, 2, 4 or 8"
            raise FrameError(msg)
        raw = self.take(count * width)
        if width == 1:
            return raw
        values = array(_TYPECODES[width], raw)
        if sys.byteorder == "big":
            values.byteswap()
        return values

    def pieces(self, count: int) -> list[bytes]:
        lengths = self.column(count)
        return cut(self.take(sum(lengths)), lengths)


def read_frame(data: bytes, offset: int = 0) -> Frame:
    """Verify the frame at `offset` and read its columns.

    Raises:
        FrameError: The frame is damaged, or its columns contradict each other.
    """
    header = check_frame(data, offset)
    return read_body(header, data, offset + HEADER_BYTES)


def read_sequences(header: FrameHeader, data: bytes, start: int) -> Sequence[int]:
    """Read only the column of sequences: for each message the difference to the header's sequence.

    Raises:
        FrameError: The columns contradict each other.
    """
    if not header.flags & SEQUENCES:
        return range(header.count)
    body = _Body(data, start, start + header.body_bytes)
    if header.flags & KEYS:
        (key_count,) = _U32.unpack(body.take(4))
        body.take(sum(body.column(key_count)))
        body.column(header.count)
    return body.column(header.count)


def read_body(header: FrameHeader, data: bytes, start: int) -> Frame:
    """Read the columns of a frame whose checksum has been verified. Its body begins at `start`."""
    body = _Body(data, start, start + header.body_bytes)
    frame = Frame(header)
    count = header.count
    if header.flags & KEYS:
        (key_count,) = _U32.unpack(body.take(4))
        frame.keys = body.pieces(key_count)
        frame.key_indexes = body.column(count)
        if count and max(frame.key_indexes) >= key_count:
            msg = f"a key index of {max(frame.key_indexes)}; the frame has {key_count} keys"
            raise FrameError(msg)
    if header.flags & SEQUENCES:
        frame.sequences = body.column(count)
    if header.flags & TIMESTAMPS:
        frame.timestamps = body.column(count)
    if header.flags & HEADERS:
        frame.headers = body.pieces(count)
    if header.flags & ABSENT:
        bits = body.take((count + 7) // 8)
        frame.absent = [index for index in range(count) if bits[index >> 3] >> (index & 7) & 1]
    if header.encoding != FRAMED:
        frame.lengths = body.column(count)
        if sum(frame.lengths) != body.end - body.at:
            msg = f"values of {sum(frame.lengths)} bytes; {body.end - body.at} are left in the body"
            raise FrameError(msg)
    elif not count and body.at < body.end:
        msg = f"{body.end - body.at} bytes of values for no message"
        raise FrameError(msg)
    frame.data = body.take(body.end - body.at)
    return frame
