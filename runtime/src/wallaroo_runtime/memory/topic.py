"""Topics in memory: what sinks write to one goes to the sources that read it, as over a broker."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from wallaroo.diagnostic import shown
from wallaroo.kafka_record import KafkaRecord
from wallaroo.memory_topic import Topics
from wallaroo.testing import Message
from wallaroo.worker.kafka_record import write_record
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.topology.model import KafkaSource, Topology, has_records

Group = tuple[KafkaSource, list[Message]]


class Feed:
    """The topics of an application's sources and sinks of whole records.

    Args:
        topology: Of the application.
        directory: Where workers that are other processes find the topics, too; None: there are none.

    Attributes:
        topics: The topics with their records.
    """

    def __init__(self, topology: Topology, directory: Path | None = None) -> None:
        self.topics, self._directory = Topics(), directory
        self._readers: dict[str, list[KafkaSource]] = {}
        for source in topology.sources():
            if isinstance(source, KafkaSource) and has_records(source):
                self._readers.setdefault(source.topic, []).append(source)

    def write(self, records: Iterable[KafkaRecord], now_ms: int) -> list[KafkaRecord]:
        """Append records to their topics; returns those that some source reads, as it gets them."""
        written = [self.topics.append(record, now_ms) for record in records]
        if self._directory is not None:
            for topic, group in groupby(written, key=attrgetter("topic")):
                _append(self._directory / hashlib.sha256(topic.encode()).hexdigest(), group)
        return [record for record in written if record.topic in self._readers]

    def messages(self, records: Sequence[KafkaRecord]) -> Iterator[Group]:
        """Yield what each source gets of records, in their order; tables come first, as in every micro-batch.

        Raises:
            RunError: R721, an attribute of a record is of another type, or too large.
        """
        groups = [(topic, list(group)) for topic, group in groupby(records, key=attrgetter("topic"))]
        pairs = [(source, group) for topic, group in groups for source in self._readers[topic]]
        for source, group in sorted(pairs, key=lambda pair: not pair[0].table):
            yield source, [_message(source, record) for record in group]


def _append(file: Path, records: Iterable[KafkaRecord]) -> None:
    found = map(write_record, records)
    with file.open("ab") as opened:
        opened.write(b"".join(len(data).to_bytes(4, "big") + data for data in found))


def _message(source: KafkaSource, record: KafkaRecord) -> Message:
    try:
        return Message(write_record(record), record.key or b"", record.timestamp_ms)
    except (TypeError, ValueError) as error:
        fix = "give it attributes of the types that KafkaRecord names"
        values = {"source": source.name, "value": shown(record), "reason": error, "fix": fix}
        raise RunError.of("R721", USAGE, **values) from error
