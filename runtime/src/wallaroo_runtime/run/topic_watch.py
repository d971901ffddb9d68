"""Checks from time to time whether brokers answer, topics were created again, and paths of files are gone."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.identity import RESET, RESET_REALTIME, is_other, other_topic
from wallaroo_runtime.run.topics import topic_id
from wallaroo_runtime.topology.model import KafkaSource, Topology

LOOK_S = 10.0
END_S = 5.0
AWAY_LOOKS = 2  # failed checks in a row that are reported: one slow answer is no outage, and a topic may come again


class TopicWatch:
    """A thread that compares the current ids of topics with those at the start.

    Readers get no error from a topic that was created again. The readers of micro-batches wait for brokers that are
    away, and report nothing.

    Args:
        sources: The sources that are read.
        ids: Id of the topic at the start, by path of the source.
        ask: Returns the id of a source's topic; empty if brokers give none.
        files: Returns a finding for each source that finds no files, by path of the source; None if none reads files.
        is_realtime: Whether the gateway reads the topics. The gateway reports outages itself.
    """

    def __init__(
        self,
        sources: Iterable[KafkaSource],
        ids: Mapping[str, str],
        ask: Callable[[KafkaSource], str],
        files: Callable[[], Mapping[str, Diagnostic]] | None = None,
        *,
        is_realtime: bool,
    ) -> None:
        self._ids, self._ask, self._is_realtime = dict(ids), ask, is_realtime
        self._files = files
        self._silent, self._missing = dict[str, Diagnostic](), dict[str, Diagnostic]()  # outages, by path of the source
        self._sources = [source for source in sources if self._ids.get(source.path)]
        self._error: Exception | None = None
        self._failed = Counter[str]()  # number of the last looks that failed, by path of the source
        self._findings: list[Diagnostic] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topics", daemon=True)

    def start(self) -> None:
        """Start the thread, if brokers give ids or sources read files."""
        if self._files is not None:  # the start has reported patterns without a match
            self._missing = dict(self._files())
        if self._sources or self._files is not None:
            self._thread.start()

    def check(self) -> None:
        """Raise the error that ended the thread.

        Raises:
            RunError: R738 if a topic was created again, R673 if it was deleted.
        """
        if self._error is not None:
            raise self._error

    @property
    def outages(self) -> dict[str, Diagnostic]:
        """The present outages of Spark's sources, by path of the source."""
        return {**self._silent, **self._missing}

    def new_findings(self) -> list[Diagnostic]:
        """Return a finding (R791, R801) for each outage that was noticed since the last call."""
        findings, self._findings = self._findings, []
        return findings

    def close(self) -> None:
        """End the thread, without waiting long for an answer of a broker."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(END_S)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(LOOK_S):
                for source in self._sources:
                    self._look(source)
                if self._files is not None:
                    self._look_at_files(self._files())
        except Exception as error:
            self._error = error

    def _look_at_files(self, missing: Mapping[str, Diagnostic]) -> None:
        self._findings += [finding for path, finding in missing.items() if path not in self._missing]
        self._missing = dict(missing)

    def _look(self, source: KafkaSource) -> None:
        try:
            now = self._ask(source)
        except RunError as error:
            self._failed[source.path] += 1
            if self._failed[source.path] == AWAY_LOOKS and not self._is_realtime:
                if error.diagnostics[0].kind is Kind.NO_TOPIC:
                    raise
                brokers = ",".join(source.brokers)
                outage = Diagnostic.of("R791", source=source.name, brokers=brokers, reason=error.reason)
                self._findings.append(outage)
                self._silent[source.path] = outage
            return
        del self._failed[source.path]
        self._silent.pop(source.path, None)
        before = self._ids[source.path]
        if is_other(before, now):
            fix = RESET_REALTIME if self._is_realtime else RESET
            raise other_topic(source.name, source.topic, before, now, fix)


def watch_topics(stack: ExitStack, topology: Topology, ids: Mapping[str, str], session: Any) -> TopicWatch:
    """Watch the topics of all sources until `stack` ends; `session` is None if the gateway reads the topics."""
    ask: Callable[[KafkaSource], str] = topic_id
    files: Callable[[], Mapping[str, Diagnostic]] | None = None
    if session is not None:
        # Late imports: these import pyspark.
        from wallaroo_runtime.spark.source.file_name import file_sources, unmatched
        from wallaroo_runtime.spark.source.kafka import topic_id as topic_id_of

        ask = partial(topic_id_of, session)
        files = partial(unmatched, session, topology) if file_sources(topology) else None
    watch = TopicWatch(topology.kafka_sources(), ids, ask, files, is_realtime=session is None)
    stack.callback(watch.close)
    watch.start()
    return watch
