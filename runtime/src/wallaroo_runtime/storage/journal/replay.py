"""A small file of a journal, `replay`: the latest block of replayed dead letters, and where its frame begins.

It is written before the frame. So the frame is in the journal if one of port 65532 begins there, and only then: nothing
else of that port can, since a writer that finds none begins with a file that says so.
"""

from pathlib import Path
from typing import NamedTuple

from wallaroo.frame import REPLAY_PORT, read_header
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.durable.line import pack_line, unpack_line
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.segment import list_segments

NAME = "replay"
NOWHERE = -1


class Block(NamedTuple):
    """A block of dead letters.

    Attributes:
        id: Of the block; 0: there was none.
        offset: Where its frame begins; below 0: that has been looked at.
        before: Id of the block before it.
    """

    id: int = 0
    offset: int = NOWHERE
    before: int = 0


def write_block(directory: Path, block: Block) -> None:
    """Note a block; it survives a loss of power.

    Raises:
        OSError: It could not be written.
    """
    replace_file(directory / NAME, pack_line(block._asdict()), durable=True)


def last_block(directory: Path, end: int) -> int:
    """Return the id of the last block in a journal, and forget one that did not get there; 0: there is none.

    Args:
        directory: The journal; its writer exists, and has appended nothing yet.
        end: Offset after its last frame.

    Raises:
        RunError: R612, file or journal are damaged.
    """
    path = directory / NAME
    try:
        content = unpack_line(path.read_bytes().rstrip(b"\n"))
    except FileNotFoundError:
        return 0
    try:
        if content is None:
            reason = "it does not fit its checksum"
            raise ValueError(reason)
        block = Block(int(content["id"]), int(content["offset"]), int(content["before"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RunError.of("R612", path=path, offset=0, reason=str(error)) from error
    if block.offset == NOWHERE or _is_there(directory, block.offset, end):
        return block.id
    write_block(directory, Block(block.before))
    return block.before


def _is_there(directory: Path, offset: int, end: int) -> bool:
    segments = list_segments(directory)
    if segments and offset < segments[0].base:
        return True  # it is processed, and its segment is removed
    piece = next(JournalReader(directory).read(offset, end), b"")
    return bool(piece) and read_header(piece).port == REPLAY_PORT
