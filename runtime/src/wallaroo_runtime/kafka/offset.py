"""Finds the offsets at which reading of a topic begins, and records that were lost before they were read."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.client import EARLIEST, LATEST


class OffsetReader(Protocol):
    """A client that asks brokers for partitions and offsets of topics."""

    def partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions."""

    def offsets(self, topic: str, partitions: Iterable[int], kind: int) -> dict[int, int]:
        """Return the first offset of partitions (`EARLIEST`), or the offset that the next record gets (`LATEST`)."""


def starting_offsets(asking: OffsetReader, topic: str, starts: Mapping[int, str]) -> dict[int, int]:
    """Return the offset at which reading of each partition begins, for starts that a user has chosen.

    Args:
        starts: For each partition `start`, `end`, an offset, or `-n` for n records before the end.

    Returns:
        The offset of each partition. It is `EARLIEST` if the start is `start`.
    """
    before_end = {number: 0 if start == "end" else int(start) for number, start in starts.items() if start[0] in "-e"}
    ends = asking.offsets(topic, before_end, LATEST)
    begins = asking.offsets(topic, before_end, EARLIEST)
    offsets: dict[int, int] = {}
    for number, start in starts.items():
        if number in before_end:
            offsets[number] = max(begins[number], ends[number] + before_end[number])
        else:
            offsets[number] = EARLIEST if start == "start" else int(start)
    return offsets


def has_content(asking: OffsetReader, topic: str) -> bool:
    """Return whether a topic has records; False if it does not exist, because the egress will create it.

    Raises:
        RunError: R672 if the brokers do not answer.
    """
    try:
        numbers = asking.partitions(topic)
    except RunError as error:
        if error.kind is not Kind.NO_TOPIC:
            raise
        return False
    return asking.offsets(topic, numbers, EARLIEST) != asking.offsets(topic, numbers, LATEST)


def check_partitions(topic: str, brokers: str, known: Iterable[int], wanted: Iterable[int]) -> None:
    """Refuse to read partitions that a topic does not have.

    Raises:
        RunError: R673 if there is such a partition.
    """
    there = sorted(known)
    if missing := sorted(set(wanted) - set(there)):
        reason = f"it has partitions {', '.join(map(str, there))}, not {missing[0]}"
        raise RunError.of("R673", topic=topic, brokers=brokers, reason=reason)


def lost_records(asking: OffsetReader, source: str, topic: str, position: Mapping[int, int]) -> Iterator[Diagnostic]:
    """Yield a finding (R792) for each partition that has lost records at or after a position.

    Args:
        source: Name of the source.
        position: Offset of the next record of each partition.
    """
    there = set(asking.partitions(topic))
    known = sorted(there & set(position))
    first, end = asking.offsets(topic, known, EARLIEST), asking.offsets(topic, known, LATEST)
    for number, offset in sorted(position.items()):
        if number not in there:
            reason = "the topic has no such partition now"
        else:
            reason = why_lost(offset, first[number], end[number])
        if reason:
            yield Diagnostic.of("R792", source=source, topic=topic, partition=number, offset=offset, reason=reason)


def why_lost(offset: int, first: int, end: int) -> str:
    """Return why the records from an offset on are lost; empty if they exist or are not written yet.

    Args:
        first: Offset of the partition's first record.
        end: Offset that the partition's next record gets.

    Example:
        >>> why_lost(3, 9, 20)
        '6 records are gone, and the first one is now 9'
    """
    if first > offset:
        return f"{first - offset} records are gone, and the first one is now {first}"
    if end < offset:
        return f"the partition ends at {end} now: its topic was created again, or its brokers lost uncopied records"
    return ""
