"""Reads the dead letters of a checkpoint, one frame at a time, for `wallaroo dead-letters` and the run's page."""

import os
import re
import shlex
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from wallaroo.message.frame import HEADER_BYTES, FrameError, FrameHeader, read_frame, read_header
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.directory import MANIFEST, find_directory
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.durable.file import damage
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.service.attachment import ATTACHMENT_FILE
from wallaroo_runtime.topology.dead_letter_text import record_place, shown_key

FOLDER = "dead-letters"
NUMBER_BYTES = 8  # size of an integer key
# The id of a query has hyphens and digits, too.
_QUERY = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAME = re.compile(rf"(?:{_QUERY}|.+?)-(?P<batch>\d+)-(?P<partition>\d+)(?:-(?P<again>\d+))?\.frames")
_ID = re.compile(r"(\d{1,20})-(\d{1,20})-(\d{1,20})")


# A file of dead letters: micro-batch, partition, number of the attempt, path.
LetterFile = tuple[int, int, int, Path]


@dataclass(frozen=True, slots=True)
class StoredLetter:
    """A dead letter that is stored in a checkpoint: a message on which user code failed.

    Attributes:
        id: `<batch>-<partition>-<number>`. It stays the same if other dead letters are removed.
        record: The dead letter as the worker has reported it.
        written: Time of the last write to the letter's file, in seconds since 1970.
    """

    id: str
    record: pb.DeadLetter
    written: float

    def summary(self) -> dict[str, Any]:
        """Return the fields that `wallaroo dead-letters ls` shows, as a JSON object."""
        record = self.record
        time = datetime.fromtimestamp(self.written, timezone.utc)
        return {
            "id": self.id,
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "code": record.code,
            "step": record.step,
            "key": _letter_key(record.key) if record.has_key else "",
            "position": record.sequence,
            "error": record.error,
            "preview": record.preview,
            "record": record_place(record),
        }


Choice = Callable[[pb.DeadLetter], bool]


def letter_folder(text: str) -> Path:
    """Return the directory with the dead letters that a user has named on a command line.

    Args:
        text: A checkpoint, a program that was run, the name of a run, or the directory of a remote egress.

    Raises:
        RunError: R652 if the dead letters are at a remote egress, R608 or R616 if there is no such directory.
    """
    path = Path(text)
    if (path / ATTACHMENT_FILE).is_file() and (path / FOLDER).is_dir():
        return path.absolute()
    if "://" in text:  # a checkpoint at a URL always has a remote egress
        raise RunError.of("R652", USAGE, path=text)
    checkpoint = find_directory(text)
    is_at_url = not (checkpoint / MANIFEST).is_file()  # the record is at the URL; this is the directory of its run
    if is_at_url or "egress" in read_manifest(checkpoint).services:
        raise RunError.of("R652", USAGE, path=checkpoint)
    return checkpoint


def read_letters(checkpoint: Path) -> Iterator[StoredLetter]:
    """Yield all dead letters of a checkpoint in the order of micro-batches. Only one frame at a time is in memory.

    Raises:
        RunError: R698 if a file is damaged.
    """
    yield from read_group(letter_files(checkpoint / FOLDER))


def find_letter(checkpoint: Path, wanted: str) -> StoredLetter:
    """Return the dead letter with an id. Only the files of its batch and partition are read.

    Raises:
        RunError: R720 if there is no letter with the id, R698 if a file is damaged.
    """
    parts = _ID.fullmatch(wanted)
    if parts is not None:
        prefix = (int(parts[1]), int(parts[2]))
        files = [entry for entry in letter_files(checkpoint / FOLDER) if entry[:2] == prefix]
        for letter in read_group(files):
            if letter.id == wanted:
                return letter
    raise RunError.of(
        "R720",
        USAGE,
        place=checkpoint,
        what="dead letter",
        name=wanted,
        known=f"the ids in `wallaroo dead-letters ls {shlex.quote(str(checkpoint))}`",
    )


def letter_files(folder: Path) -> list[LetterFile]:
    """Return the files of dead letters in a folder, sorted by micro-batch, partition and attempt."""
    files = []
    for path in folder.glob("*.frames"):
        if name := _NAME.fullmatch(path.name):
            files.append((int(name["batch"]), int(name["partition"]), int(name["again"] or 0), path))
    return sorted(files)


def read_group(files: list[LetterFile]) -> Iterator[StoredLetter]:
    """Yield the letters in sorted files. A removed letter is an empty value there, so later letters keep their ids.

    Raises:
        RunError: R698 if a file is damaged.
    """
    at: tuple[int, int] | None = None
    number = 0
    for batch, partition, _, path in files:
        if at != (batch, partition):
            at, number = (batch, partition), 0
        for value, written in _values(path):
            if value:
                yield StoredLetter(f"{batch}-{partition}-{number}", pb.DeadLetter.FromString(value), written)
            number += 1


def _values(path: Path) -> Iterator[tuple[bytes, float]]:
    """Yield the values in a file (serialized letters), each with the time of the file's last change."""
    try:
        with path.open("rb") as file:
            written = os.fstat(file.fileno()).st_mtime
            while head := file.read(HEADER_BYTES):
                header: FrameHeader = read_header(head)
                frame = head + file.read(header.body_bytes)
                yield from ((value, written) for value in read_frame(frame).values())
    except FileNotFoundError:
        return  # `wallaroo dead-letters prune` has removed it meanwhile
    except (OSError, FrameError) as error:
        raise damage(error, path) from error


def latest_letters(checkpoint: Path, count: int, choose: Choice, most: int = 10_000) -> list[StoredLetter]:
    """Return the last dead letters that `choose` accepts, the newest first.

    Args:
        checkpoint: The directory with the dead letters.
        count: The largest number of letters to return.
        choose: Returns whether to include a letter.
        most: Number of read letters after which no further micro-batch is read.

    Raises:
        RunError: R698 if a file is damaged.
    """
    groups: dict[tuple[int, int], list[LetterFile]] = {}
    for entry in letter_files(checkpoint / FOLDER):
        groups.setdefault(entry[:2], []).append(entry)
    letters: list[StoredLetter] = []
    for files in reversed(groups.values()):
        kept: deque[StoredLetter] = deque(maxlen=count - len(letters))
        for letter in read_group(files):
            most -= 1
            if choose(letter.record):
                kept.append(letter)
        letters.extend(reversed(kept))
        if len(letters) >= count or most <= 0:
            break
    return letters


def _letter_key(key: bytes) -> str:
    """Return a key as text for people. A key of 8 bytes that is not a text is shown as an integer."""
    text = shown_key(key)
    return str(int.from_bytes(key, "big")) if len(key) == NUMBER_BYTES and text.startswith("0x") else text


def is_chosen(code: str, step: str) -> Choice:
    """Return a function that says whether a letter has the code and the step that a user has chosen.

    Args:
        code: Code of the error; empty for any.
        step: Name or path of the source, step or sink; empty for any.
    """

    def choose(letter: pb.DeadLetter) -> bool:
        return (not code or letter.code == code) and (not step or step in (letter.step, letter.path))

    return choose
