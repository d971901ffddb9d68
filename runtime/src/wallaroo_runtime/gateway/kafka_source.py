"""Kafka sources of a gateway in real-time mode: their records go into the journal like messages of other sources."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.gateway.intake import Intake
from wallaroo_runtime.gateway.kafka_reader import BEGINNING, LOOK_ANSWER_S, KafkaReader
from wallaroo_runtime.gateway.source_progress import SourceProgress
from wallaroo_runtime.service._proto import service_pb2 as pb


def points_of(config: pb.KafkaSource, past: SourceProgress) -> dict[int, int]:
    """Return the next offset to read of each partition: from the journal, else the configured start.

    A partition that was added later begins at its first record, unless the source names its partitions. If the source
    resets and its topic was created again, the journal's offsets are dropped. That happens once per topic, because the
    id of the new topic is kept.
    """
    known = past.points[config.port]
    if config.topic_id:
        if config.reset and past.topics.get(config.port, config.topic_id) != config.topic_id:
            known.clear()
        past.topics[config.port] = config.topic_id
    if not known:
        known.update(config.starts)
    if not config.chosen:
        return {**dict.fromkeys(config.starts, BEGINNING), **known}
    return {number: known.setdefault(number, start) for number, start in config.starts.items()}


class KafkaSources:
    """The Kafka sources of a gateway, each with a thread that reads its topic.

    At each start, tables (topics in which the latest record of a key counts) are read to their ends before others.

    Args:
        points: Next offset of each partition, by port of the source.
        intake: Takes the messages.
        say: Takes findings.
        wake: Makes the event loop call `turn`; any thread may call it.
    """

    def __init__(
        self,
        configs: Iterable[pb.KafkaSource],
        points: Mapping[int, Mapping[int, int]],
        intake: Intake,
        say: Callable[[Diagnostic], None],
        wake: Callable[[], None],
    ) -> None:
        self._readers = [KafkaReader(config, points[config.port], wake) for config in configs]
        self._messages = dict.fromkeys((reader.config.port for reader in self._readers), 0)
        self._intake, self._say = intake, say
        self._taken = 0  # value of `Intake.taken` after the last record
        self._start()

    @property
    def hold(self) -> bool:
        """True if other sources must wait until a table (latest record of each key) has been read to its end."""
        return any(reader.config.table and not _is_at_end(reader) for reader in self._readers)

    def _start(self) -> None:
        """Start the readers that need not wait for tables."""
        for reader in self._readers:
            if reader.config.table or not self.hold:
                reader.start()

    def turn(self) -> bool:
        """Take the records read so far, while the journal has room. Called once in every turn of the event loop.

        Returns:
            Whether other sources may go on.

        Raises:
            RunError: R792 if records are lost and the source does not reset.
        """
        for reader in self._readers:
            self._take(reader)
            while reader.findings:
                self._say(reader.findings.popleft())
        self._start()
        return not self.hold

    def _take(self, reader: KafkaReader) -> None:
        while reader.frames and self._intake.accepts:
            frame = reader.frames.popleft()
            self._intake.take_whole(frame)
            self._messages[reader.config.port] += frame.count
            self._taken = self._intake.taken
            reader.took(frame)
        if reader.error is not None and not reader.frames:
            raise reader.error

    def status(self) -> list[dict[str, Any]]:
        """Return the progress of each source, for the status file."""
        return [
            {
                "name": reader.config.name,
                "port": reader.config.port,
                "messages": self._messages[reader.config.port],
                "at_end": _is_at_end(reader) and self._intake.is_safe(self._taken),
                "outage": outage and outage.to_json(),
            }
            for reader, outage in [(each, each.outage) for each in self._readers]  # its thread changes `outage`
        ]

    def close(self) -> None:
        """End the threads."""
        for wait_s in (0.0, LOOK_ANSWER_S):
            for reader in self._readers:
                reader.close(wait_s)

    def settle(self) -> None:
        """Record how far topics are read. Called after `close` and after the journal is closed.

        Frames have no offsets of aborted records and markers after the last record. If a topic removes them, such an
        offset would look as if records were lost.
        """
        past, end = self._intake.past, self._intake.writer.end
        if not self._readers or not self._intake.is_safe(self._intake.taken):
            return
        past.move(end.offset)
        for reader in self._readers:
            points, passed = past.points[reader.config.port], dict(reader.passed)
            for number, offset in passed.items() if not reader.frames else ():
                points[number] = max(offset, points.get(number, offset))
        with contextlib.suppress(OSError):
            past.save()


def _is_at_end(reader: KafkaReader) -> bool:
    """Return whether the intake has taken all records that the topic had at the start."""
    return reader.has_caught_up and not reader.frames
