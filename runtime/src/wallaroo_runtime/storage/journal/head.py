"""Two small files of a journal: `head` has the end of its readable part, `committed` the end of its processed part."""

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.system.lock import locked

_HEAD = struct.Struct("<QQQI")
HEAD_BYTES = _HEAD.size + 4
_TRIES = 100


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two frames of a journal.

    Attributes:
        offset: Number of frame bytes from the beginning of the journal.
        messages: Number of messages before the position; ticks and visits are not counted.
        journal_id: Identity of the journal.
    """

    offset: int
    messages: int
    journal_id: int


def pack_head(position: Position) -> bytes:
    """Return the 32 bytes of the file `head`."""
    content = _HEAD.pack(position.offset, position.messages, position.journal_id, 0)
    return content + zlib.crc32(content).to_bytes(4, "little")


def read_head(directory: Path) -> Position | None:
    """Return the end of a journal's readable part, from its file `head`; None if this file is missing or torn."""
    try:
        descriptor = os.open(directory / "head", os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # The writer overwrites the 32 bytes in place, so a read may see half of a write. Then read again.
        for _ in range(_TRIES):
            content = os.pread(descriptor, HEAD_BYTES + 1, 0)
            if len(content) == HEAD_BYTES and zlib.crc32(content[:-4]) == int.from_bytes(content[-4:], "little"):
                offset, messages, journal_id, _ = _HEAD.unpack(content[:-4])
                return Position(offset, messages, journal_id)
        return None
    finally:
        os.close(descriptor)


def read_committed(directory: Path) -> int:
    """Return the offset up to which the journal is processed; 0 if nothing was committed yet.

    Raises:
        RunError: R698 if the file does not fit its checksum.
    """
    path = directory / "committed"
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return 0
    offset, *checksum = text.split() or [b""]
    # After a loss of power the file may be empty. An offset that is too small only keeps bytes for longer.
    if not text.strip(b"\0\n"):
        return 0
    if not offset.isdigit() or checksum != [_checksum(offset)]:
        raise RunError.of("R698", what=path, reason="the file does not fit its checksum")
    return int(offset)


def _checksum(offset: bytes) -> bytes:
    return b"%08x" % zlib.crc32(offset)


def write_committed(directory: Path, offset: int) -> None:
    """Move the committed offset forward. A smaller offset changes nothing."""
    with locked(directory):  # both Spark's source and the driver move the offset
        if offset > read_committed(directory):
            text = b"%d" % offset
            replace_file(directory / "committed", b"%s %s\n" % (text, _checksum(text)))
