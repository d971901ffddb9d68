"""Cuts the byte stream of a connection into messages."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_LENGTHS = {
    "u8": struct.Struct("B"),
    "u16be": struct.Struct(">H"),
    "u16le": struct.Struct("<H"),
    "u32be": struct.Struct(">I"),
    "u32le": struct.Struct("<I"),
    "u64be": struct.Struct(">Q"),
    "u64le": struct.Struct("<Q"),
}
LENGTH_KINDS = tuple(_LENGTHS)
NEWLINE = "newline"
KINDS = (*LENGTH_KINDS, NEWLINE)


@dataclass(frozen=True, slots=True)
class Cut:
    """The whole messages that a cutter found at the beginning of a buffer.

    Attributes:
        count: Number of whole messages.
        end: Position after the last whole message.
        wanted: Size of the message at `end`, header included; 0 if that size is not known yet.
        too_large: Known payload size of the message at `end` if it is over the limit, else 0.
    """

    count: int
    end: int
    wanted: int = 0
    too_large: int = 0


Cutter = Callable[[bytes | bytearray, int], Cut]


class Splitter(Protocol):
    """Cuts a byte stream into messages by the user's decoder. One thread makes all calls, and a call may block."""

    def split(self, data: bytes) -> tuple[list[int], int]:
        """Cut bytes that begin at a message boundary.

        Returns:
            The lengths of the whole messages at the start of `data`, and the length of the incomplete message after
            them; 0 if it is not known.
        """


def length_packer(kind: str) -> struct.Struct:
    """Return the `struct` that writes the length before a payload; `kind` is one of `LENGTH_KINDS`."""
    return _LENGTHS[kind]


def framer(kind: str) -> Callable[[bytes], bytes]:
    r"""Return a function that adds the framing to a payload, as a sender does.

    Args:
        kind: One of `KINDS`.

    Example:
        >>> framer("u16be")(b"hi"), framer("newline")(b"hi"), framer("newline")(b"hi\r")
        (b'\x00\x02hi', b'hi\n', b'hi\r\r\n')
    """
    if kind == NEWLINE:
        return lambda payload: payload + (b"\r\n" if payload.endswith(b"\r") else b"\n")
    pack = _LENGTHS[kind].pack
    return lambda payload: pack(len(payload)) + payload


def misfit(kind: str, payload: bytes) -> str:
    """Return the reason why a framing cannot carry a payload; empty if the framing can."""
    if kind == NEWLINE:
        return "a line has no line break in it" if b"\n" in payload else ""
    return f"its {len(payload)} bytes do not fit framing {kind}" if len(payload) >> (8 * _LENGTHS[kind].size) else ""


def fixed_cutter(kind: str, max_message_bytes: int) -> Cutter:
    r"""Return the cutter for a framing that needs no worker: messages begin with their length, or are lines.

    The cutter takes a buffer that begins at a message boundary, and the number of its bytes to use.

    Args:
        kind: One of `KINDS`.
        max_message_bytes: Size of the longest payload that is allowed.

    Example:
        >>> cutter = fixed_cutter("u16be", 100)
        >>> cutter(b"\0\2hi\0\0\0\5wor", 11)
        Cut(count=2, end=6, wanted=7, too_large=0)
    """
    if kind == NEWLINE:
        return _line_cutter(max_message_bytes)
    layout = _LENGTHS[kind]
    unpack, width = layout.unpack_from, layout.size

    def cut(data: bytes | bytearray, size: int) -> Cut:
        at = count = 0
        last = size - width
        while at <= last:
            (length,) = unpack(data, at)
            if length > max_message_bytes:
                return Cut(count, at, too_large=length)
            end = at + width + length
            if end > size:
                return Cut(count, at, end - at)
            at = end
            count += 1
        return Cut(count, at)

    return cut


def _line_cutter(max_message_bytes: int) -> Cutter:
    def cut(data: bytes | bytearray, size: int) -> Cut:
        if size <= max_message_bytes:  # with so few bytes, no line can be too long
            end = data.rfind(b"\n", 0, size) + 1
            return Cut(data.count(b"\n", 0, end), end)
        at = count = 0
        while (end := data.find(b"\n", at, size)) >= 0 and end - at <= max_message_bytes:
            at, count = end + 1, count + 1
        longest = (end if end >= 0 else size) - at
        return Cut(count, at, too_large=longest if longest > max_message_bytes else 0)

    return cut


def splitter_cut(splitter: Splitter, data: bytes, header_bytes: int, max_message_bytes: int) -> Cut:
    """Let a splitter cut the bytes of a connection into messages, and check the answer.

    Raises:
        ValueError: The answer contradicts the data.
    """
    lengths, wanted = splitter.split(data)
    end = sum(lengths)
    if end > len(data) or any(length < header_bytes for length in lengths):
        reason = f"messages of {shown_lengths(lengths)} bytes in {len(data)} bytes"
        raise ValueError(reason)
    if wanted > header_bytes + max_message_bytes:
        return Cut(len(lengths), end, too_large=wanted - header_bytes)
    left = len(data) - end
    # The message is whole, but the splitter does not return it. It would get the same bytes again and again.
    if left >= header_bytes and 0 < wanted <= left:
        reason = f"a message of {wanted} bytes was not taken out of {left} bytes"
        raise ValueError(reason)
    if left >= header_bytes + max_message_bytes and not wanted:
        return Cut(len(lengths), end, too_large=left - header_bytes)
    return Cut(len(lengths), end, wanted if left >= header_bytes else 0)


def shown_lengths(lengths: list[int]) -> str:
    """Return the first few lengths as text, for an error message."""
    return ", ".join(map(str, lengths[:5])) + (", ..." if len(lengths) > 5 else "")
