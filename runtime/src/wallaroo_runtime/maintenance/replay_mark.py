"""Stores which dead letters were replayed, as marks in a file."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wallaroo_runtime.checkpoint.dead_letter import FOLDER
from wallaroo_runtime.durable.file import replace_file, sync_file
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.system.lock import TRY, take_lock

MARKS = "replayed"


def read_marks(checkpoint: Path) -> Iterator[str]:
    """Yield the ids of the letters that were replayed."""
    try:
        with (checkpoint / FOLDER / MARKS).open(encoding="ascii") as file:
            # A line without its end was torn by a loss of power.
            yield from (line[:-1] for line in file if line.endswith("\n"))
    except FileNotFoundError:
        return


def replace_marks(checkpoint: Path, ids: Iterable[str]) -> None:
    """Write the file of marks again, with the marks of these letters only. The caller holds `letters_locked`."""
    content = "".join(f"{each}\n" for each in ids).encode("ascii")
    replace_file(checkpoint / FOLDER / MARKS, content, durable=True)


def mark(checkpoint: Path, ids: Sequence[str]) -> None:
    """Mark letters as replayed. The marks survive a loss of power."""
    path = checkpoint / FOLDER / MARKS
    with open(path, "ab+", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)  # a loss of power may have cut the last line: it marks nothing
        file.write("".join(f"{each}\n" for each in ids).encode("ascii"))
    sync_file(path)


@contextmanager
def letters_locked(checkpoint: Path) -> Iterator[None]:
    """Hold a lock in the block, so that only one replay or prune of a checkpoint runs at a time.

    Raises:
        RunError: R610 if another replay or prune runs.
    """
    folder = checkpoint / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        lock = take_lock(folder, TRY)
    except BlockingIOError as error:
        raise RunError.of(
            "R610", what=f"checkpoint {checkpoint}", holder="another replay or prune", own="a checkpoint"
        ) from error
    try:
        yield
    finally:
        os.close(lock)
