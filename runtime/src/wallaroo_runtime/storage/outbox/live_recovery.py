"""Recovers the live log (output of real-time mode) after a crash: keeps its whole entries, and syncs them to disk."""

import os
from pathlib import Path

from wallaroo_runtime.durable.file import sync_directory
from wallaroo_runtime.storage.journal.segment import write_all
from wallaroo_runtime.storage.outbox.live import FOLDER, live_segments
from wallaroo_runtime.storage.outbox.live_state import LastSegment, LiveState, read_last


def recover(outbox: Path, dead_letters: Path) -> tuple[LiveState, int]:
    """Cut a partial entry off the end of the live log. Make the files of dead letters agree with the log.

    The call reads only the last segment.

    Returns:
        The state of the log, and its end.

    Raises:
        RunError: R698 if something is lost that was safe.
    """
    directory = outbox / FOLDER
    for path in directory.glob("*.new"):
        path.unlink()
    last = read_last(outbox)
    segments = live_segments(directory)
    if segments:
        _cut(segments[-1].path, last.end - segments[-1].base)
        _restore_letters(dead_letters, last)
        sync_directory(directory)
    return last.state, last.end


def _cut(path: Path, size: int) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _restore_letters(folder: Path, last: LastSegment) -> None:
    """Make the files of dead letters equal to the last segment of the log: add lost letters, cut off unknown ones.

    A file that had all of them keeps its time, since this is the age of its letters.
    """
    sizes = {writer.letters: last.state.letter_bytes[part] for part, writer in last.state.writers.items()}
    # Files without letters in the segment are cut, too: after a loss of power they may have more than the log.
    for name in {name for name, _ in last.letters} | {
        name for name in sizes if sizes[name] or (folder / name).exists()
    }:
        descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            before = os.fstat(descriptor)
            for _, entry in (each for each in last.letters if each[0] == name):
                write_all(descriptor, entry.content, entry.sequence)
            if name in sizes:
                os.ftruncate(descriptor, sizes[name])
            if os.fstat(descriptor).st_size == before.st_size:
                os.utime(descriptor, ns=(before.st_atime_ns, before.st_mtime_ns))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    if last.letters:
        sync_directory(folder)
