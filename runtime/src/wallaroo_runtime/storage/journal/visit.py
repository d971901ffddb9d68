"""Three small files of a journal about its latest visits.

`visits` has where each one is, `visited` what each came to, `visits-done` the offset before which all are done, though
they may not be committed.

They serve those who ask about a visit, and may be lost: the visits themselves are frames of the journal.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.durable.line import pack_line, read_line

VISITS, COUNTS, DONE = "visits", "visited", "visits-done"
MOST = 1000


class JournaledVisit(NamedTuple):
    """A visit of the journal.

    Attributes:
        id: Of the visit.
        end: Offset after its frame.
    """

    id: int
    end: int


def read_visits(directory: Path) -> list[JournaledVisit]:
    """Return the latest visits of a journal, the oldest first."""
    return [JournaledVisit(*map(int, item)) for item in _read(directory / VISITS)]


def write_visits(directory: Path, visits: Sequence[JournaledVisit]) -> None:
    """Keep the latest visits of a journal."""
    _write(directory / VISITS, list(map(list, visits[-MOST:])))


def read_counts(directory: Path) -> dict[int, tuple[int, int]]:
    """Return how many keys visits ran for, and how many of them failed, by their ids."""
    return {int(number): (int(keys), int(failed)) for number, keys, failed in _read(directory / COUNTS)}


def read_done(directory: Path) -> int:
    """Return the offset before which visits are done, whether they are committed or not; 0: it is not known."""
    return max((int(offset) for offset in _read(directory / DONE)), default=0)


def add_counts(directory: Path, counts: Mapping[int, tuple[int, int]], done: int = 0) -> None:
    """Note what visits came to; only one process at a time may do so.

    Args:
        directory: Of the journal.
        counts: Of some visits.
        done: Offset before which visits are done; 0: those that are committed.
    """
    known = read_counts(directory) | dict(counts)
    _write(directory / COUNTS, [[number, *known[number]] for number in sorted(known)[-MOST:]])
    if done:
        _write(directory / DONE, [done])


def _read(path: Path) -> list[Any]:
    with suppress(ValueError):
        if (content := read_line(path)) is not None:
            return list(content["visits"])
    return []


def _write(path: Path, items: list[Any]) -> None:
    replace_file(path, pack_line({"visits": items}))
