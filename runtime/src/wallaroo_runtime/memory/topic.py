"""Keeps topics in memory: sources read the records that sinks write to the same topic, as with a broker."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, closest, shown
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.memory_message import Message, Record
from wallaroo.message.memory_topic import MemoryTopics, looked_up
from wallaroo.worker.value.kafka_record import read_record, write_record
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource, Topology, has_records

Group = tuple[KafkaSource, list[Message]]


class TopicFeed:
    """The Kafka topics of an application's sources and sinks, in memory.

    Args:
        topology: Topology of the application.
        directory: Directory in which workers in other processes find the topics; None if there are no such workers.
        find_lookups: Starts these workers, which then create a file for each topic that they look up.

    Attributes:
        topics: The topics with their records.
    """

    def __init__(self, topology: Topology, directory: Path | None, find_lookups: Callable[[], None]) -> None:
        self.topics, self._directory, self._find_lookups = MemoryTopics(), directory, find_lookups
        kafka = [end for end in (*topology.sources(), *topology.sinks()) if isinstance(end, KafkaSource | KafkaSink)]
        self._known = sorted({end.topic for end in kafka})
        self._written = {end.topic for end in kafka if isinstance(end, KafkaSink)}
        self._readers: dict[str, list[KafkaSource]] = {}
        for source in topology.sources():
            if isinstance(source, KafkaSource):
                self._readers.setdefault(source.topic, []).append(source)

    def check(self, topic: str, *, is_new: bool) -> None:
        """Refuse a topic that the application does not have.

        Args:
            is_new: Whether an unknown topic is accepted, unless its name is similar to the name of a known topic.

        Raises:
            RunError: R720 if the topic is refused.
        """
        if topic in self._known or topic in self.topics:
            return
        close = closest(topic, self._known)
        if (is_new and not close) or self._is_looked_up(topic):
            return
        known = ", ".join(f'"{each}"' for each in self._known) or "none"
        hint = f'; did you mean "{close}"?' if close else ""
        raise RunError.of(
            "R720", USAGE, place="the application", what="topic", name=f'"{topic[:80]}"', known=f"{known}{hint}"
        )

    def unread(self, topic: str) -> Diagnostic | None:
        """Return a finding (R720) if no source reads a topic and no program looks it up, else None."""
        if topic in self._readers or self._is_looked_up(topic):
            return None
        known = ", ".join(f'"{each}"' for each in self._readers)
        return Diagnostic.of(
            "R720",
            place="the application",
            what="source of topic",
            name=f'"{topic[:80]}"',
            known=f"sources of {known}",
        )

    def unfed(self) -> list[str]:
        """Return topics without records that sources read, and that no sink of the application writes."""
        return [topic for topic in self._readers if topic not in self._written and not self.topics.records(topic)]

    def _is_looked_up(self, topic: str) -> bool:
        """Say whether a program looks up a topic as a table. The topology has no lookups, so the program is asked."""
        if topic in looked_up:
            return True
        if self._directory is None:
            return False
        if not self._file(topic).exists():
            self._find_lookups()
        return self._file(topic).exists()

    def _file(self, topic: str) -> Path:
        assert self._directory is not None
        return self._directory / hashlib.sha256(topic.encode("utf-8", "surrogateescape")).hexdigest()

    def write(self, records: Iterable[KafkaRecord], now_ms: int) -> list[KafkaRecord]:
        """Append records to their topics. Return the complete records of topics that a source reads.

        Raises:
            RunError: R721 if an item is not a record; then no record is appended.
        """
        records = list(records)
        for record in records:
            _bytes(record)
        written = [self.topics.append(record, now_ms) for record in records]
        if self._directory is not None:
            for topic, group in groupby(written, key=attrgetter("topic")):
                _append(self._file(topic), group)
        return [record for record in written if record.topic in self._readers]

    def messages(self, records: Sequence[KafkaRecord]) -> Iterator[Group]:
        """Yield each source with its messages, made from these records. Sources that are tables come first."""
        groups = [(topic, list(group)) for topic, group in groupby(records, key=attrgetter("topic"))]
        pairs = [(source, group) for topic, group in groups for source in self._readers[topic]]
        for source, group in sorted(pairs, key=lambda pair: not pair[0].table):
            yield source, [_message(source, record) for record in group]


def _append(file: Path, records: Iterable[KafkaRecord]) -> None:
    values = map(write_record, records)
    with file.open("ab") as opened:
        opened.write(b"".join(len(data).to_bytes(4, "big") + data for data in values))


def _message(source: KafkaSource, record: KafkaRecord) -> Message:
    value = _bytes(record) if has_records(source) else record.value or b""
    return Message(value, record.key or b"", record.timestamp_ms)


def written_record(sink: KafkaSink, output: Record) -> KafkaRecord:
    """Return the record that is written to a sink's topic for an output message."""
    if has_records(sink):
        return replace(read_record(output.value or b""), topic=sink.topic)
    return KafkaRecord(sink.topic, output.key, output.value, partition=output.partition)


def _bytes(record: Any) -> bytes:
    fix = "give it attributes of the types that KafkaRecord names"
    try:
        if not isinstance(record, KafkaRecord):
            fix = 'produce records: KafkaRecord("TOPIC", b"KEY", b"VALUE")'
            msg = f"expected a KafkaRecord, {type(record).__name__} found"
            raise TypeError(msg)
        return write_record(record)
    except (TypeError, ValueError) as error:
        source = record.topic if isinstance(record, KafkaRecord) else "of records"
        raise RunError.of(
            "R721", USAGE, place=f'source "{source}"', value=shown(record), reason=error, fix=fix
        ) from error
