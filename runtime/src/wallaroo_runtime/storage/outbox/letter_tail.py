"""Finds new dead letters of real-time mode in the files that the egress writes."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from wallaroo.message.frame import HEADER_BYTES, FrameError, FrameHeader, read_frame, read_header, split_frames
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.storage.outbox.refused_record import PREFIX

LETTERS_PER_BATCH = 10_000
Found = list[tuple[str, pb.DeadLetter]]  # dead letters with their ids, as in `wallaroo dead-letters`
_SUFFIX = ".frames"


def letters_of(pieces: Iterable[bytes]) -> Iterator[pb.DeadLetter]:
    """Yield the dead letters of frames, in order. Each piece has one or more whole frames."""
    for data in pieces:
        for _, start, _ in split_frames(data):
            yield from map(pb.DeadLetter.FromString, read_frame(data, start).values())


class LetterTail:
    """Finds the dead letters that the egress writes from now on, except those of records that Kafka refuses.

    Args:
        folder: Folder to which the egress writes the dead letters, a file for each micro-batch.
        add: Called with new dead letters, and with the number of all new dead letters, which may be higher.

    Attributes:
        count: Number of dead letters that were found.
    """

    def __init__(self, folder: Path, add: Callable[[Found, int], None]) -> None:
        self._folder, self._add, self.count = folder, add, 0
        self._known = {path: path.stat().st_size for path in self._files()}  # bytes of each file so far
        self._numbers: dict[Path, int] = {}  # number of letters in the known bytes, for files where it was needed
        self._cut: set[Path] = set()  # files whose end was cut and written again

    def _files(self) -> list[Path]:
        files = self._folder.glob(f"*{_SUFFIX}")
        return sorted((path for path in files if not path.name.startswith(PREFIX)), key=_place_of)

    def look(self) -> None:
        """Find the letters that came since the last call."""
        for path in self._files():
            known, size = self._known.get(path, 0), path.stat().st_size
            if size < known or size >= known + HEADER_BYTES and not _begins(path, known):
                self._cut.add(path)
            if path in self._cut:
                self._known[path] = self._recount(path, size)
            elif size > known:
                self._known[path] = self._read(path, known)

    def _recount(self, path: Path, size: int) -> int:
        """Count the letters of a file again, after its end was rewritten. Return the end of the last whole frame."""
        frames = list(_frames(path, 0, size))
        number, known = sum(header.count for _, _, header in frames), self._known.get(path, 0)
        before = self._numbers.get(path, sum(header.count for _, end, header in frames if end <= known))
        self.count += max(0, number - before)
        self._add([], max(0, number - before))
        self._numbers[path] = max(number, before)
        return frames[-1][1] if frames else 0

    def _read(self, path: Path, begin: int) -> int:
        """Read the dead letters in a file after an offset. Return the end of the file's last whole frame."""
        if path not in self._numbers:
            self._numbers[path] = sum(header.count for _, _, header in _frames(path, 0, begin))
        batch, partition = _place_of(path)
        new_letters: Found = []
        number, end = self._numbers[path], begin
        with path.open("rb") as file:
            for start, end, header in _frames(path, begin, path.stat().st_size):
                file.seek(start)
                if len(new_letters) < LETTERS_PER_BATCH:
                    letters = enumerate(letters_of([file.read(end - start)]), number)
                    new_letters += [(f"{batch}-{partition}-{at}", letter) for at, letter in letters]
                number += header.count
        self.count += number - self._numbers[path]
        self._add(new_letters, number - self._numbers[path])
        self._numbers[path] = number
        return end


def _begins(path: Path, at: int) -> bool:
    """Return whether a frame begins at an offset of a file."""
    with path.open("rb") as file:
        file.seek(at)
        try:
            read_header(file.read(HEADER_BYTES))
        except FrameError:
            return False
    return True


def _place_of(path: Path) -> tuple[int, int]:
    """Return the numbers of micro-batch and partition in the name of a file."""
    _, batch, partition = path.name.removesuffix(_SUFFIX).rsplit("-", 2)
    return int(batch), int(partition)


def _frames(path: Path, begin: int, end: int) -> Iterator[tuple[int, int, FrameHeader]]:
    """Yield begin, end and header of each whole frame. A frame that is being written is not whole yet."""
    with path.open("rb") as file:
        while begin + HEADER_BYTES <= end:
            file.seek(begin)
            try:
                header = read_header(file.read(HEADER_BYTES))
            except FrameError:
                return  # a restarted egress is writing this part again; `wallaroo dead-letters` finds real damage
            following = begin + HEADER_BYTES + header.body_bytes
            if following > end:
                return
            yield begin, following, header
            begin = following
