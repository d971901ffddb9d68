"""A small file of a journal, `replay`: the latest block of replayed dead letters, and where its frame begins.

It is written before the frame. So the frame is in the journal if that goes further, and only then: a writer looks at
the file before it appends anything else.
"""

from pathlib import Path
from typing import NamedTuple

from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.durable.line import pack_line, read_line
from wallaroo_runtime.errors import RunError

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
        RunError: R612, the file is damaged.
    """
    path = directory / NAME
    try:
        if (content := read_line(path)) is None:
            return 0
        block = Block(int(content["id"]), int(content["offset"]), int(content["before"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RunError.of("R612", path=path, offset=0, reason=str(error)) from error
    if block.offset < end:
        return block.id
    write_block(directory, Block(block.before))
    return block.before
