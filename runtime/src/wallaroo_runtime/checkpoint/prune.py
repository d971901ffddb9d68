"""Removes dead letters, also while the application runs.

A letter's id has its number among those of its micro-batch and partition. So a file that keeps a letter, or that comes
before one that does, is written again with an empty value in the place of each removed letter; the last files without
letters are removed. Counts of a run come from the log of the outbox, not from these files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from wallaroo.frame import HEADER_BYTES, encode_frame, read_frame, read_header
from wallaroo_runtime.checkpoint.dead_letter import FOLDER, DeadLetter, LetterFile, letter_files, read_group
from wallaroo_runtime.checkpoint.replay_mark import letters_locked, read_marks, replace_marks
from wallaroo_runtime.durable.file import replace_file, sync_directory
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.storage.outbox.live import FOLDER as LIVE
from wallaroo_runtime.storage.outbox.live import live_segments
from wallaroo_runtime.storage.outbox.log import read_base


@dataclass
class Pruned:
    """What came of a prune, or would come of it.

    Attributes:
        removed: Letters.
        kept: Letters that were not chosen, or whose micro-batch is being published.
        bytes: By how much the files became shorter; 0 in a dry run.
    """

    removed: int = 0
    kept: int = 0
    bytes: int = 0


def prune(checkpoint: Path, choose: Callable[[DeadLetter, bool], bool], *, dry_run: bool = False) -> Pruned:
    """Remove letters of micro-batches that are published; after a kill, the same command removes the rest.

    Args:
        checkpoint: The checkpoint directory, or that of a remote egress.
        choose: Says whether to remove a letter, which it gets with whether it was replayed.
        dry_run: Whether to count only.

    Raises:
        RunError: R620 or R698, a file is damaged; R718, a replay or prune is running; R775, the letters are part of a
            live log.
        OSError: The disk failed.
    """
    if live_segments(checkpoint / "outbox" / LIVE):
        raise RunError.of("R775", USAGE, path=checkpoint)
    result = Pruned()
    with letters_locked(checkpoint):
        published = read_base(checkpoint / "outbox").batches  # the driver writes the files of the next one
        marks = set(read_marks(checkpoint))
        gone: set[str] = set()
        for _, files in groupby(letter_files(checkpoint / FOLDER), key=lambda file: file[:2]):
            group = list(files)
            is_safe = all(batch <= published.get(_query(path), -1) for batch, _, _, path in group)
            judged = [(letter.id, is_safe and choose(letter, letter.id in marks)) for letter in read_group(group)]
            chosen = {id_ for id_, is_chosen in judged if is_chosen}
            result.kept += len(judged) - len(chosen)
            result.removed += len(chosen)
            if chosen and not dry_run:
                result.bytes += _rewrite(group, chosen)
                gone |= chosen
        if gone:
            sync_directory(checkpoint / FOLDER)
        if gone & marks:
            replace_marks(checkpoint, [each for each in read_marks(checkpoint) if each not in gone])
    return result


def _query(path: Path) -> str:
    return path.name[:36]


def _rewrite(group: list[LetterFile], chosen: set[str]) -> int:
    """Write the files of a micro-batch and partition without these letters; return the bytes saved."""
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
            replace_file(path, content, durable=True)
        saved += len(data) - (0 if is_last else len(content))
    return saved
