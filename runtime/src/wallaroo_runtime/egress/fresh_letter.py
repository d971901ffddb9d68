"""The latest dead letters of real-time mode, for a driver on another machine, which cannot read their files."""

from collections import deque
from pathlib import Path

from wallaroo.worker._proto import worker_pb2 as worker
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.letter_tail import Found, LetterTail

MOST_LETTERS = 1000
MOST_BYTES = 1024 * 1024
MOST_CHARACTERS = 2000  # limit for each text of a letter


class FreshLetters:
    """Finds new dead letters, and keeps some of the latest until a driver has received them.

    Args:
        folder: Folder with the files of dead letters.
    """

    def __init__(self, folder: Path) -> None:
        self._tail = LetterTail(folder, self._add)
        self._kept: deque[tuple[int, pb.FreshLetter]] = deque(maxlen=MOST_LETTERS)

    def _add(self, batch: Found, count: int) -> None:
        for number, (name, letter) in enumerate(batch[:MOST_LETTERS], self._tail.count - count + 1):
            self._kept.append((number, pb.FreshLetter(id=name, letter=_shown(letter).SerializeToString())))

    def after(self, known: int) -> tuple[int, list[pb.FreshLetter]]:
        """Return the kept dead letters after letter number `known`, and the new value of `known` for the next call.

        Args:
            known: Number that the previous call returned; a call without an answer may be repeated.

        Returns:
            The number for the next call, and the letters, about 1 MiB at most.
        """
        self._tail.look()
        if known > self._tail.count:  # the number is of an earlier egress process
            known = 0
        while self._kept and self._kept[0][0] <= known:
            self._kept.popleft()
        letters, size = list[pb.FreshLetter](), 0
        for number, letter in self._kept:
            size += letter.ByteSize() + 8
            if letters and size > MOST_BYTES:
                return number - 1, letters
            letters.append(letter)
        return self._tail.count, letters


def _shown(letter: worker.DeadLetter) -> worker.DeadLetter:
    """Return a short copy of a letter, without its input, which may be as large as a frame."""
    shown = worker.DeadLetter()
    shown.CopyFrom(letter)
    for name in ("key", "input"):
        shown.ClearField(name)
    for name in ("error", "preview", "traceback"):
        setattr(shown, name, getattr(letter, name)[:MOST_CHARACTERS])
    return shown
