"""Converts the read positions of topics between Spark's offsets and the journal's points in real-time mode."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.manifest import Manifest
from wallaroo_runtime.gateway.source_progress import Past
from wallaroo_runtime.peer.configuration import kafka_sources
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.topology.model import GeneratorSource, KafkaSource

Offsets = dict[int, int]  # offset of the next record of each partition


class Topics:
    """The topics that a checkpoint's application reads.

    Args:
        path: The checkpoint directory.
        manifest: The checkpoint's record.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._journal, topology = path / "journal", manifest.load()
        known = manifest.ports.parts
        self.sources: list[KafkaSource] = list(kafka_sources(topology))
        self.ports = {source.path: known[source.path] for source in self.sources}
        self._ids = manifest.topics
        self._generators = [known[each.path] for each in topology.sources() if isinstance(each, GeneratorSource)]

    def of_spark(self, lines: Sequence[Any]) -> dict[str, Offsets] | None:
        """Return the offsets of each source from Spark's record, by path; None if Spark has not read all sources yet.

        Args:
            lines: Spark's offsets of its sources other than journals.
        """
        if len(lines) != len(self.sources) or None in lines:
            return None
        pairs = zip(self.sources, lines, strict=True)
        return {each.path: {int(at): int(next_) for at, next_ in line[each.topic].items()} for each, line in pairs}

    def lines(self) -> list[str]:
        """Return, for each source of a topic, the offsets that the journal has reached, as lines for Spark's record."""
        points = self._past().points if self.sources else {}
        return [json.dumps({each.topic: {str(at): point for at, point in points[self.ports[each.path]].items()}})
                for each in self.sources]  # fmt: skip

    def keep(self, offsets: Mapping[str, Offsets]) -> None:
        """Write Spark's offsets to the journal, so that a gateway continues there. Without topics, do nothing."""
        if not self.sources:
            return
        past = self._past()
        past.points.update({self.ports[path]: dict(ends) for path, ends in offsets.items()})
        past.topics.update(self._ids)
        past.save()

    def _past(self) -> Past:
        past = Past(self._journal, self._generators, (), self.ports.values())
        past.advance(JournalReader(self._journal).end().offset)
        return past
