"""Large states in state logs: a serialized state of more than 4 MiB is cut into pieces, one per entry of the log.

SPECIFICATION.md, section 4, describes the layout. The header `piece` of a value has the number of the piece and the
number of pieces.
"""

import struct
from collections.abc import Iterator

from wallaroo.message.frame import Frame, FrameError, encode_frame, read_frame

PIECE_BYTES = 4 * 1024 * 1024
_HEADER = struct.Struct("<H5sIII")  # lengths of name and value, name; number of the piece, count
_NAME = b"piece"


def write_pieces(value: bytes, *, key: bytes, port: int, encoding: int) -> Iterator[bytes]:
    """Yield the log entries of one state: one entry, or several pieces if the state is large.

    Example:
        >>> entries = list(write_pieces(bytes(9_000_000), key=b"k", port=1, encoding=16))
        >>> len(entries)
        3
        >>> joiner = Joiner()
        >>> [frame.lengths for entry in entries if (frame := joiner.take(entry)) is not None]
        [[9000000]]
    """
    starts = range(0, max(1, len(value)), PIECE_BYTES)
    for number, start in enumerate(starts):
        headers = [_HEADER.pack(len(_NAME), _NAME, 8, number, len(starts))] if len(starts) > 1 else ()
        data = value[start : start + PIECE_BYTES]
        yield encode_frame([data], port=port, encoding=encoding, keys=[key], key_indexes=[0], headers=headers)


class Joiner:
    """Reads the entries of a state log in order and joins the pieces of large states."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._first: tuple[object, ...] = ()

    def take(self, entry: bytes) -> Frame | None:
        """Return the frame of the next entry; None if the entry is a piece of a large state, and more pieces follow.

        The frame for the last piece contains the whole state.

        Raises:
            FrameError: The entry is damaged, or it is not the expected piece.
        """
        frame = read_frame(entry)
        if not frame.headers or frame.headers == [b""]:
            self.end()
            return frame
        number, count = _numbers(frame)
        belongs = (frame.header.port, frame.header.encoding, frame.keys[0], count)
        if number != len(self._parts) or (self._parts and belongs != self._first):
            msg = f"piece {number} of {count} of a state comes after {len(self._parts)} pieces"
            raise FrameError(msg)
        self._first = belongs
        self._parts.append(frame.data)
        if number + 1 < count:
            return None
        frame.data, self._parts = b"".join(self._parts), []
        frame.lengths = [len(frame.data)]
        return frame

    def end(self) -> None:
        """Check that the last state is complete, before another entry or at the end of the log.

        Raises:
            FrameError: Pieces of a state are missing.
        """
        if self._parts:
            msg = f"a state of {self._first[-1]} pieces ends after {len(self._parts)}"
            raise FrameError(msg)


def _numbers(frame: Frame) -> tuple[int, int]:
    """Return number and count of a piece of a state, which are in the frame's header `piece`."""
    if frame.header.count == 1 and len(frame.keys) == 1 and not frame.absent and len(frame.headers[0]) == _HEADER.size:
        size, name, value_size, number, count = _HEADER.unpack(frame.headers[0])
        if (size, name, value_size) == (len(_NAME), _NAME, 8) and number < count > 1:
            return number, count
    msg = "an entry of a state log has headers that are not those of a piece"
    raise FrameError(msg)
