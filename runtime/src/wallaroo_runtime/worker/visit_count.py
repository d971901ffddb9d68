"""Adds up the counts of visits, over steps, buckets and tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from wallaroo.worker._proto import worker_pb2 as pb


@dataclass(frozen=True, slots=True)
class VisitCount:
    """The counts of a visit.

    Attributes:
        keys: Number of keys for which a visitor ran. A key that several steps visit counts once for each step.
        failed: Number of these keys for which the visit became a dead letter.
    """

    keys: int = 0
    failed: int = 0

    def __add__(self, other: "VisitCount") -> "VisitCount":
        return VisitCount(self.keys + other.keys, self.failed + other.failed)


Visits = dict[int, VisitCount]  # counts by id of the visit


def count_visits(into: Visits, visits: Iterable[pb.Visited]) -> None:
    """Add the counts in the reply of a bucket's call."""
    for visit in visits:
        into[visit.id] = into.get(visit.id, VisitCount()) + VisitCount(visit.keys, visit.failed)


def add_visits(into: Visits, others: Mapping[int, VisitCount]) -> None:
    """Add other counts of visits."""
    for number, count in others.items():
        into[number] = into.get(number, VisitCount()) + count
