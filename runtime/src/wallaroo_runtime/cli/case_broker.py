"""The Kafka of the cases of one command: a broker that the first case of records starts."""

import contextlib
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.broker import Broker
from wallaroo_runtime.kafka.client import Cluster, kafka_client
from wallaroo_runtime.kafka.topic import create_topic, delete_topics
from wallaroo_runtime.spark.java import check_java
from wallaroo_runtime.system.stop import SIGNALLED
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource, Topology

WHAT = "wallaroo test --engine spark"


class CaseBroker:
    """A broker of one node with the topics of the case that runs; it starts with the first case, and once only."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._broker: Broker | None = None
        self._failure: RunError | None = None

    @property
    def address(self) -> str:
        """HOST:PORT by which clients reach it."""
        assert self._broker is not None
        return self._broker.address

    def start(self) -> None:
        """Start it, unless it runs.

        Raises:
            RunError: R728, the client is not installed; R724, there are no jars; R725, it ended. The next call raises
                the same.
        """
        if self._failure is not None:
            raise self._failure
        if self._broker is not None:
            return
        try:
            kafka_client(WHAT)
            check_java()
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="wallaroo-test-kafka-"))
            print("starting a Kafka broker for the cases", file=sys.stderr, flush=True)
            broker = Broker(Path(folder) / "data")
            self._stack.callback(broker.stop)
            broker.start()
            self._broker = broker
        except RunError as error:
            self._failure = error
            raise

    def stop(self) -> None:
        """End it; nothing of it is left."""
        self._stack.close()

    @contextlib.contextmanager
    def topics(self, topology: Topology, named: Iterable[str]) -> Iterator[Cluster]:
        """Make the topics of a case, and remove all at its end.

        Args:
            topology: Whose topics there are, with the settings that it declares.
            named: Further ones, each with one partition.

        Raises:
            RunError: R727, Kafka does not take a name or a setting.
        """
        cluster = Cluster([self.address], {}, WHAT)
        made: list[str] = []
        try:
            for name, (partitions, settings) in _wanted(topology, named).items():
                create_topic(cluster, name, partitions, 1, settings)
                made.append(name)
            yield cluster
        finally:
            if self._broker is not None and self._broker.is_alive:
                delete_topics(cluster, made)


def _wanted(topology: Topology, named: Iterable[str]) -> dict[str, tuple[int, dict[str, str]]]:
    """Return each topic's number of partitions and settings: one partition, as in memory, unless it says another."""
    found: dict[str, tuple[int, dict[str, str]]] = {}
    for part in (*topology.sources(), *topology.sinks()):
        if not isinstance(part, KafkaSource | KafkaSink):
            continue
        partitions, settings = found.get(part.topic, (1, {}))
        if part.create is not None:
            partitions, settings = max(partitions, part.create.partitions), dict(part.create.options)
        if isinstance(part, KafkaSource) and part.partitions:
            partitions = max(partitions, *(number + 1 for number, _ in part.partitions))
        settings.pop("min.insync.replicas", None)  # there is one broker
        found[part.topic] = partitions, settings
    return {**dict.fromkeys(named, (1, {})), **found}


@contextlib.contextmanager
def case_broker() -> Iterator[CaseBroker]:
    """Give the broker of a command; SIGTERM stops it in order, too."""
    broker = CaseBroker()
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _end) if is_main else None
    try:
        yield broker
    finally:
        broker.stop()
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _end(number: int, _frame: object) -> NoReturn:
    sys.exit(SIGNALLED + number)
