"""Finds new dead letters of a run in real-time mode at the egress, which writes them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.storage.outbox.letter_tail import Found, LetterTail
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.place import DriverOutput, OutputPlace

if TYPE_CHECKING:
    from wallaroo_runtime.storage.remote_outbox import RemoteOutbox


class RemoteLetters:
    """Finds new dead letters by asking a remote egress, as `LetterTail` does in the files of a local egress.

    Args:
        before: Number of dead letters at the egress when this object is made.
        add: As for `LetterTail`.

    Attributes:
        count: Number of letters found.
    """

    def __init__(self, outbox: "RemoteOutbox", before: int, add: Callable[[Found, int], None]) -> None:
        self._outbox, self._before, self._add, self.count, self._known = outbox, before, add, 0, 0

    def look(self) -> None:
        """Find new letters since the last look. Some may be missing while the egress does not answer."""
        reply = self._outbox.fresh_letters(self._known)
        if reply is None:
            return
        letters = [(each.id, pb.DeadLetter.FromString(each.letter)) for each in reply.letters]
        count = max(self.count, reply.dead_letters - self._before)
        self._add(letters, count - self.count)
        self.count, self._known = count, reply.last_letter


Letters: TypeAlias = LetterTail | RemoteLetters


def open_output(output: OutputPlace, add: Callable[[Found, int], None]) -> tuple[DriverOutput, Letters]:
    """Open the output of a run, and return it with an object that finds the run's dead letters.

    Args:
        add: Called with new dead letters, as for `LetterTail`.

    Raises:
        RunError: R698 if the output is damaged, R642 if the egress does not answer.
    """
    if output.service is None:
        return Outbox(output.outbox, output.dead_letters, output.staging), LetterTail(Path(output.dead_letters), add)
    from wallaroo_runtime.storage.remote_outbox import RemoteOutbox

    remote = RemoteOutbox(output.service, waits=False)
    return remote, RemoteLetters(remote, remote.letters(), add)
