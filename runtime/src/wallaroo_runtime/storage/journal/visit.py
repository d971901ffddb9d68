"""Two files about the latest visits (calls of user code for each key of a state): their positions and their counts.

`visits` has the positions in the journal, `visited` the counts. The files only serve questions about visits, so they
may be lost. The visits themselves are frames of the journal.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from wallaroo_runtime.durable.record import read_record, write_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb

VISITS, VISITED = "visits", "visited"
MOST = 1000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Visits:
    """The content of `visits`: the positions of visits in the journal. The gateway writes the file.

    Attributes:
        ends: Offset after the frame of each visit, by its id, in order.
    """

    ends: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Visited:
    """The content of `visited`: the counts of visits. The driver writes the file, or a remote gateway.

    Attributes:
        counts: Number of keys that a visit ran for, and how many of them failed, by id of the visit.
        done: Offset before which visits are done, though they may not be committed; 0 if it is not known.
    """

    counts: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    done: int = 0


def read_visits(directory: Path) -> dict[int, int]:
    """Return the places of a journal's latest visits: the offsets after their frames, by id of the visit."""
    with suppress(RunError):
        return dict((read_record(directory / VISITS, Visits) or Visits()).ends)
    return {}


def write_visits(directory: Path, ends: Mapping[int, int]) -> None:
    """Write the places of a journal's latest visits, so that callers can later ask whether visits are processed."""
    write_record(directory / VISITS, Visits(_latest(ends)), durable=False)


def read_visited(directory: Path) -> Visited:
    """Return the counts of a journal's latest visits; no counts if the file is missing or damaged."""
    with suppress(RunError):
        return read_record(directory / VISITED, Visited) or Visited()
    return Visited()


def add_counts(directory: Path, counts: Iterable[pb.VisitCount], done: int = 0) -> None:
    """Add counts of visits to `visited`. Only one process at a time may do so.

    Args:
        directory: Directory of the journal.
        done: Offset before which visits are done; 0 keeps the former offset.
    """
    known = read_visited(directory)
    new = {visit.id: (visit.keys, visit.failed) for visit in counts}
    visited = Visited(_latest({**known.counts, **new}), done or known.done)
    write_record(directory / VISITED, visited, durable=False)


def _latest(by_id: Mapping[int, T]) -> dict[int, T]:
    return dict(sorted(by_id.items())[-MOST:])
