"""Removes dead letters. With micro-batches, this is possible while the application runs.

A letter's id has its number among the letters of its micro-batch and partition. So a file with remaining letters, or
before such a file, is written again with an empty value in place of each removed letter. Trailing files without letters
are removed. Counts of a run come from the log of the outbox, not from these files. A file that is written again keeps
its time, from which the age of its letters follows.

In real-time mode the live log (the egress's log of this mode's results) also has the letters of its last segment, and
the egress writes them again after a crash. So the application must not run, and a new segment is begun first. The file
of the last run, which the next run may continue, is not changed until another run has begun its own file.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from wallaroo.message.frame import HEADER_BYTES, encode_frame, read_frame, read_header
from wallaroo_runtime.checkpoint.dead_letter import FOLDER, LetterFile, StoredLetter, letter_files, read_group
from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.durable.file import replace_file, sync_directory
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.maintenance.replay import letters_locked, read_marks, replace_marks
from wallaroo_runtime.storage.outbox.live import FOLDER as LIVE
from wallaroo_runtime.storage.outbox.live import live_segments
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.live_state import read_last
from wallaroo_runtime.storage.outbox.log import read_base

ID_LENGTH = 36  # the name of a file with dead letters begins with the id of its query


@dataclass
class Pruned:
    """The result of a prune or a dry run, in numbers of dead letters.

    Attributes:
        removed: Number of letters removed.
        kept: Number of letters that stay: not chosen, of a micro-batch that is being published, or of the last run in
            real-time mode.
        of_last_run: Number of letters that were chosen but kept, because they are of the last run in real-time mode.
        bytes: Number of bytes by which the files became shorter; 0 in a dry run.
    """

    removed: int = 0
    kept: int = 0
    of_last_run: int = 0
    bytes: int = 0


def prune(checkpoint: Path, choose: Callable[[StoredLetter, bool], bool], *, dry_run: bool = False) -> Pruned:
    """Remove chosen dead letters of published micro-batches. If the process is killed, the next prune removes the rest.

    Args:
        checkpoint: The checkpoint directory, or the directory of a remote egress.
        choose: Returns whether to remove a letter; its second argument says whether the letter was replayed.
        dry_run: Whether to count only.

    Raises:
        RunError: R698 if a file is damaged; R610 if a replay or prune runs, or an application with a live log; R608
            for the directory of a remote egress with a live log.
        OSError: The disk failed.
    """
    if not live_segments(checkpoint / "outbox" / LIVE):
        return _prune(checkpoint, choose, _is_published(checkpoint), dry_run=dry_run)
    if not (checkpoint / MANIFEST).is_file():
        reason = (
            f"the dead letters of {checkpoint} cannot be pruned; its egress is not in a checkpoint, and its live log "
        )
        raise RunError.of("R608", USAGE, reason=f"{reason}names places in their files", fix="keep them")
    if dry_run:
        is_realtime = read_manifest(checkpoint).is_realtime
        return _prune(checkpoint, choose, _is_settled(checkpoint), dry_run=True, is_realtime=is_realtime)
    held = HeldDirectory.take(checkpoint)
    try:
        return _prune_live(held, choose)
    finally:
        held.release()


def _prune_live(held: HeldDirectory, choose: Callable[[StoredLetter, bool], bool]) -> Pruned:
    from wallaroo_runtime.peer.local import stop_left_behind  # late import: the import includes gRPC

    held.check_links()
    stop_left_behind(held.path)  # an egress that has outlived its driver would write dead letters
    is_settled, is_realtime = _is_settled(held.path), read_manifest(held.path).is_realtime
    live = LiveLog(held.path / "outbox", held.path / FOLDER)
    try:
        if not is_realtime:
            live.state.forget_writers()  # the input of these writers is committed, so no task repeats it
        live.roll()
    finally:
        live.close()
    return _prune(held.path, choose, is_settled, dry_run=False, is_realtime=is_realtime)


def _is_settled(checkpoint: Path) -> Callable[[int, Path], bool]:
    """Return a function that says whether a file of dead letters may be changed: no run may write to it again.

    This is for checkpoints that have been in real-time mode.
    """
    if not read_manifest(checkpoint).is_realtime:
        return _is_published(checkpoint)
    used = {writer.letters for writer in read_last(checkpoint / "outbox").state.writers.values()}
    return lambda batch, path: path.name not in used


def _is_published(checkpoint: Path) -> Callable[[int, Path], bool]:
    """Return a function that says whether a file of dead letters may be changed: its micro-batch must be published."""
    published = read_base(checkpoint / "outbox").batches
    return lambda batch, path: batch <= published.get(path.name[:ID_LENGTH], -1)


def _prune(
    checkpoint: Path,
    choose: Callable[[StoredLetter, bool], bool],
    is_settled: Callable[[int, Path], bool],
    *,
    dry_run: bool,
    is_realtime: bool = False,
) -> Pruned:
    result = Pruned()
    with letters_locked(checkpoint):
        marks = set(read_marks(checkpoint))
        gone: set[str] = set()
        for _, files in groupby(letter_files(checkpoint / FOLDER), key=lambda file: file[:2]):
            group = list(files)
            is_safe = all(is_settled(batch, path) for batch, _, _, path in group)
            judged = [(letter.id, choose(letter, letter.id in marks)) for letter in read_group(group)]
            wanted = {id_ for id_, is_chosen in judged if is_chosen}
            chosen = wanted if is_safe else set()
            result.kept += len(judged) - len(chosen)
            result.of_last_run += len(wanted - chosen) if is_realtime else 0
            result.removed += len(chosen)
            if chosen and not dry_run:
                result.bytes += _rewrite(group, chosen)
                gone |= chosen
        if gone:
            sync_directory(checkpoint / FOLDER)
        if gone & marks:
            replace_marks(checkpoint, [each for each in read_marks(checkpoint) if each not in gone])
    return result


def _rewrite(group: list[LetterFile], chosen: set[str]) -> int:
    """Write the files of one micro-batch and partition again without the chosen letters. Return the saved bytes."""
    batch, partition = group[0][:2]
    number, contents = 0, []
    for _, _, _, path in group:
        data, at, frames, is_empty = path.read_bytes(), 0, [], True
        while at < len(data):
            header = read_header(data[at : at + HEADER_BYTES])
            end = at + HEADER_BYTES + header.body_bytes
            values = read_frame(data[at:end]).values()
            ids = [f"{batch}-{partition}-{number + index}" for index in range(len(values))]
            left = [b"" if each in chosen else value for each, value in zip(ids, values, strict=True)]
            is_empty = is_empty and not any(left)
            frames.append(data[at:end] if left == list(values) else encode_frame(left, port=header.port))
            number, at = number + len(values), end
        contents.append((path, data, b"".join(frames), is_empty))
    saved, is_last = 0, True
    for path, data, content, is_empty in reversed(contents):
        is_last = is_last and is_empty
        if is_last:
            path.unlink()
        elif data != content:
            times = path.stat()
            replace_file(path, content, durable=True)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        saved += len(data) - (0 if is_last else len(content))
    return saved
