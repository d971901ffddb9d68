"""Kafka topics in memory: the test engine uses them instead of a broker."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from wallaroo.message.kafka_record import KafkaRecord, has_time


class MemoryTopics:
    """The Kafka topics of a test, each with all its records in the order of their arrival.

    Example:
        >>> topics = MemoryTopics()
        >>> topics.append(KafkaRecord("users-table", b"Ann", b"7"), 1000).offset
        0
        >>> topics.table("users-table")
        {b'Ann': b'7'}
    """

    def __init__(self) -> None:
        self._records: dict[str, list[KafkaRecord]] = defaultdict(list)
        self._tables: dict[str, dict[bytes, bytes]] = defaultdict(dict)

    def append(self, record: KafkaRecord, now_ms: int) -> KafkaRecord:
        """Append a record, and return it as readers get it, with offset, partition and time."""
        records, table = self._records[record.topic], self._tables[record.topic]
        time = record.timestamp_ms if has_time(record.timestamp_ms) else now_ms
        kept = replace(record, timestamp_ms=time, partition=record.partition or 0, offset=len(records))
        records.append(kept)
        key = kept.key or b""
        if kept.value is None:
            table.pop(key, None)
        else:
            table[key] = kept.value
        return kept

    def __contains__(self, topic: object) -> bool:
        return topic in self._records

    def records(self, topic: str) -> list[KafkaRecord]:
        """Return the records of a topic."""
        return list(self._records.get(topic, ()))

    def table(self, topic: str) -> dict[bytes, bytes]:
        """Return the latest value of each key, without keys whose latest record has no value."""
        return self._tables.get(topic, {})


# Topics that programs of this process look up as tables; a topology does not name them.
looked_up: set[str] = set()
_current: list[MemoryTopics] = []


def current() -> MemoryTopics | None:
    """Return the topics of the test engine that runs user code now; None without one, since a broker has the topics."""
    return _current[-1] if _current else None


@contextmanager
def using(topics: MemoryTopics) -> Iterator[None]:
    """Let `current` return these topics to user code while the context is open."""
    _current.append(topics)
    try:
        yield
    finally:
        _current.pop()
