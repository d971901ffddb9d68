"""Finds new dead letters of a run in real-time mode at the egress, which writes them."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.storage.outbox.letter_tail import LetterTail
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.place import DriverOutput, OutputPlace

if TYPE_CHECKING:
    from wallaroo_runtime.storage.remote_outbox import RemoteOutbox


class LocalLetters:
    """Finds new dead letters in the files of an egress on this machine.

    Args:
        folder: The directory of these files.

    Attributes:
        watch: Chooses the dead letters that the run reports.
    """

    def __init__(self, folder: Path) -> None:
        self.watch = LetterWatch()
        self._tail = LetterTail(folder, self.watch.add)

    @property
    def count(self) -> int:
        """Number of letters found."""
        return self._tail.count

    def look(self) -> None:
        """Find new letters since the last look."""
        self._tail.look()


class RemoteLetters:
    """Finds new dead letters by asking a remote egress.

    Args:
        before: Number of dead letters at the egress when this object is made.

    Attributes:
        watch: Chooses the dead letters that the run reports.
        count: Number of letters found.
    """

    def __init__(self, outbox: "RemoteOutbox", before: int) -> None:
        self.watch, self.count = LetterWatch(), 0
        self._outbox, self._before, self._known = outbox, before, 0

    def look(self) -> None:
        """Find new letters since the last look. Some may be missing while the egress does not answer."""
        reply = self._outbox.fresh_letters(self._known)
        if reply is None:
            return
        letters = [(each.id, pb.DeadLetter.FromString(each.letter)) for each in reply.letters]
        count = max(self.count, reply.dead_letters - self._before)
        self.watch.add(letters, count - self.count)
        self.count, self._known = count, reply.last_letter


Letters: TypeAlias = LocalLetters | RemoteLetters


def open_output(output: OutputPlace) -> tuple[DriverOutput, Letters]:
    """Open the output of a run, and return it with an object that finds the run's dead letters.

    Raises:
        RunError: R698 if the output is damaged, R642 if the egress does not answer.
    """
    if output.service is None:
        return Outbox(output.outbox, output.dead_letters, output.staging), LocalLetters(Path(output.dead_letters))
    from wallaroo_runtime.storage.remote_outbox import RemoteOutbox

    remote = RemoteOutbox(output.service, waits=False)
    return remote, RemoteLetters(remote, remote.letters())
