"""Messages of dead letters that run again: taken from users in blocks, journaled once, answered when they are safe."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from wallaroo.frame import HEADER_BYTES, PLAIN, REPLAY_PORT, FrameError, FrameHeader, check_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.durable.file import NO_ROOM
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.intake import Gathered, Intake
from wallaroo_runtime.storage.journal.replay import Block, write_block

PATIENCE_S = 30.0
AGAIN = "give the same command again: what is in the journal is not sent again"


@dataclass(slots=True)
class Asked:
    """A block that somebody waits for; it is `done` when it is safe, or never will be."""

    id: int
    header: FrameHeader
    body: bytes
    frame: Gathered | None = None
    is_safe: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class Replays:
    """Takes blocks of dead letters for the event loop of a gateway.

    Args:
        intake: Where they go.
        last: Id of the last block that the journal has.
        wake: Makes the event loop call `turn`, from another thread.

    Attributes:
        last: Id of the last block that the journal has or will have.
    """

    def __init__(self, intake: Intake, last: int, wake: Callable[[], None]) -> None:
        self._intake, self.last, self._wake = intake, last, wake
        self._asked: deque[Asked] = deque()
        self._written: list[Asked] = []
        self._is_closed = False

    def ask(self, number: int, frame: bytes, seconds: float = PATIENCE_S) -> int:
        """Journal a block, unless the journal has it or a later one; from any thread but the event loop's.

        Args:
            number: Id of the block.
            frame: With its dead letters; empty: nothing is journaled.
            seconds: How long it may take.

        Returns:
            Id of the last block in the journal; it is safe.

        Raises:
            RunError: R777, it is no such frame, or it cannot be journaled.
        """
        if not frame:
            return self.last
        asked = Asked(number, _header(frame), frame[HEADER_BYTES:])
        self._asked.append(asked)
        self._wake()
        asked.done.wait(seconds)
        if asked.is_safe:
            return max(self.last, number)
        reason = "the gateway ends" if self._is_closed else f"the journal took nothing for {seconds:g} s"
        raise RunError.of("R777", reason=f"{reason}; they may be in it", fix=AGAIN)

    def turn(self) -> None:
        """Do what is due; called once in every turn of the event loop."""
        while self._asked and self._intake.accepts and self._take(self._asked[0]):
            self._written.append(self._asked.popleft())
        for asked in [each for each in self._written if self._has(each)]:
            self._written.remove(asked)
            asked.is_safe = True
            asked.done.set()

    def _take(self, asked: Asked) -> bool:
        """Journal a block that is new; False: there is no room now."""
        if asked.id <= self.last:
            asked.frame = next((each.frame for each in self._written if each.id == asked.id), None)
            return True
        self._intake.flush()
        if self._intake.disk_is_full:
            return False
        writer = self._intake.writer
        try:
            write_block(writer.directory, Block(asked.id, writer.end.offset, self.last))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return False
        self.last = asked.id
        header = asked.header
        asked.frame = self._intake.take_columns(REPLAY_PORT, header.count, header.flags, [asked.body])
        return True

    def _has(self, asked: Asked) -> bool:
        return asked.frame is None or self._intake.has_safe(asked.frame)

    def close(self) -> None:
        """Answer those that are safe, and refuse the others; the journal is closed."""
        self._is_closed = True
        for asked in (*self._written, *self._asked):
            asked.is_safe = asked.frame is not None and self._has(asked)
            asked.done.set()


def _header(frame: bytes) -> FrameHeader:
    """Return the header of a frame that tasks can read: what is in the journal cannot be taken back."""
    try:
        header = check_frame(frame)
        for value in read_frame(frame).values():
            pb.DeadLetter.FromString(value)
    except (FrameError, DecodeError) as error:
        raise RunError.of("R777", reason=f"what came is no frame of dead letters; {error}", fix=AGAIN) from error
    size = HEADER_BYTES + header.body_bytes
    if (header.port, header.encoding, size) != (REPLAY_PORT, PLAIN, len(frame)) or not header.count:
        raise RunError.of("R777", reason="what came is no frame of dead letters", fix=AGAIN)
    return header
