"""Chooses the dead letters that a run reports: for each step and code the 1st, the 10th, the 100th, and so on."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.storage.outbox.letter_tail import LETTERS_PER_BATCH, Found, letters_of
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.topology.dead_letter_text import letter_words

TRACEBACK_LINES = 6
FUNCTION_LINES = 3  # first lines of a Python traceback: title, and place in the function that the runtime called
LENGTH_BYTES = 4
FRAMED = (
    "; the message begins with its length, as of a frame: if its source reads lines, send with "
    "`wallaroo send --framing newline`"
)


@dataclass(frozen=True, slots=True)
class Notable:
    """A dead letter that the run reports, with the number of dead letters of this step and code so far.

    Attributes:
        count: Number of dead letters of the same step and code in this run, with this one.
        is_least: Whether `count` may be too low, because not all letters of large micro-batches are read.
        id: Id of the dead letter in `wallaroo dead-letters`.
    """

    count: int
    is_least: bool
    id: str
    letter: pb.DeadLetter

    def finding(self, command: str) -> Diagnostic:
        """Return the warning about the dead letter (R740).

        Args:
            command: The command that shows a dead letter, without the id.
        """
        letter, least = self.letter, "at least " if self.is_least else ""
        what = "a message is a dead letter" if self.count == 1 else f"{least}{self.count:,} messages are dead letters"
        finding = Diagnostic.of(
            "R740", what=what, step=letter.step, reason=f"{letter.code} {letter.error}{letter_words(letter)}",
            pointer=f"/{letter.path}", traceback="" if self.count > 1 else shortened(letter.traceback),
            command=f"{command} {self.id}",
        )  # fmt: skip
        return replace(finding, fix=finding.fix + self.hint)

    @property
    def hint(self) -> str:
        """Advice to change the sender's framing, if a message begins with its own length; else an empty text."""
        letter = self.letter
        length, left = int.from_bytes(letter.input[:LENGTH_BYTES], "big"), len(letter.input) - LENGTH_BYTES
        is_payload = "/sources/" in letter.path and not letter.HasField("origin")
        return FRAMED if is_payload and 0 < length <= left + 1 else ""  # + 1: a line break that was cut off


class LetterWatch:
    """Counts the dead letters of a run by step and error code, and collects those that the run reports."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._notable: deque[Notable] = deque()
        self._is_least = False

    @staticmethod
    def look(batch: int, files: Iterable[StagedFile], read: Callable[[StagedFile], Iterable[bytes]]) -> Found:
        """Read the first dead letters of a micro-batch, at most `LETTERS_PER_BATCH`, and return them with their ids.

        Args:
            batch: Number of the micro-batch.
            files: The files with dead letters, in the order in which they are published.
            read: Yields the frames of one file.
        """
        numbers: Counter[int] = Counter()
        first_letters: Found = []
        letters = ((file.partition, letter) for file in files for letter in letters_of(read(file)))
        for partition, letter in islice(letters, LETTERS_PER_BATCH):
            first_letters.append((f"{batch}-{partition}-{numbers[partition]}", letter))
            numbers[partition] += 1
        return first_letters

    def add(self, letters: Found, published: int) -> None:
        """Count the letters that `look` returned for a micro-batch.

        Args:
            letters: The result of `look`.
            published: Number of dead letters in the micro-batch, which may be more.
        """
        self._is_least |= published > len(letters)
        for name, letter in letters:
            kind = letter.path, letter.code
            self._counts[kind] += 1
            if is_power_of_ten(self._counts[kind]):
                self._notable.append(Notable(self._counts[kind], self._is_least, name, letter))

    def news(self) -> Sequence[Notable]:
        """Return the new letters to report since the last call. Another thread may call `add` at the same time."""
        return [self._notable.popleft() for _ in range(len(self._notable))]


def is_power_of_ten(count: int) -> bool:
    """Say whether a count is 1, 10, 100, and so on.

    Example:
        >>> [count for count in range(1, 2000) if is_power_of_ten(count)]
        [1, 10, 100, 1000]
    """
    return count > 0 and str(count).strip("0") == "1"


def shortened(traceback: str) -> str:
    r"""Return the most useful lines of a traceback.

    A traceback of Python keeps the first lines, which name the user's function, and the last lines, where a library
    may have raised the error. A traceback of Go keeps the first lines.

    Example:
        >>> shown = shortened("Traceback (most recent call last):\n" + "  frame\n" * 9 + "KeyError: 1")
        >>> shown.count("frame"), shown.splitlines()[-2:]
        (7, ['  frame', 'KeyError: 1'])
    """
    lines = traceback.rstrip().splitlines()
    is_python = traceback.startswith("Traceback")
    if len(lines) <= TRACEBACK_LINES + (FUNCTION_LINES if is_python else 0):
        return "\n".join(lines)
    if is_python:
        return "\n".join((*lines[:FUNCTION_LINES], "  ...", *lines[-TRACEBACK_LINES:]))
    return "\n".join((*lines[:TRACEBACK_LINES], "..."))
