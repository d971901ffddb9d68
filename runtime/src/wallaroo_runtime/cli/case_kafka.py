"""Runs a case whose input are records of topics, on Spark and a broker."""

import contextlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo.kafka_record import KafkaRecord
from wallaroo_runtime.cli.case import Case, Found, bad
from wallaroo_runtime.cli.case_broker import CaseBroker
from wallaroo_runtime.cli.case_driver import CaseDriver, case_driver
from wallaroo_runtime.cli.case_topics import Step, steps, written_topics
from wallaroo_runtime.cli.record_line import record_line
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.client import Cluster, connection_settings
from wallaroo_runtime.kafka.reader import Reader
from wallaroo_runtime.kafka.writer import Writer
from wallaroo_runtime.memory.part import unknown
from wallaroo_runtime.memory.run import VISIT
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.memory.topic import Feed
from wallaroo_runtime.topology.canonical import canonical_text
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource, Topology
from wallaroo_runtime.topology.override import with_brokers

if TYPE_CHECKING:
    from wallaroo_runtime.program.application import Application

IDLE_S = 5.0
LOOKUP_S = 1.0  # for workers to see a table that they look up: nothing says when they have
SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl.")
IN_MEMORY = "leave out --engine spark"


def on_topics(
    case: Case, app: Path, arguments: Sequence[str], application: "Application", broker: CaseBroker, folder: Path
) -> Found:
    """Run a case of records with `wallaroo run`.

    Args:
        arguments: Of the application.
        application: What was loaded with them.
        folder: For what is not needed afterwards.

    Raises:
        RunError: R745, the run failed, or it cannot be on Spark; R784, R720, a topic or a visit is misspelt; R724,
            R725, R728, there is no broker.
    """
    topology = application.topology
    if application.archive is not None:
        raise bad(case.folder, "an archive is not run with a broker of a case", 'name its program: app = "PATH"')
    _refuse(case, topology)
    batches = [step for item in case.setting("input", []) for step in steps(case.folder / item["file"])]
    written = list(dict.fromkeys(record.topic for step in batches if isinstance(step, list) for record in step))
    shown = case.setting("topics", written_topics(topology))
    _check_names(app, arguments, topology, batches, written, shown)
    broker.start()
    document = folder / "topology.json"
    document.write_text(canonical_text(with_brokers(topology, broker.address).document), encoding="utf-8")
    checkpoint = folder / "checkpoint"
    options = case.setting("options", [])
    with (
        broker.topics(topology, [*written, *shown]) as cluster,
        case_driver(case, document, checkpoint, options, broker.address) as driver,
    ):
        driver.wait_ready()
        with contextlib.closing(Reader(cluster, dict.fromkeys([*_read(topology), *shown]))) as reader:
            _Run(case, topology, cluster, reader, driver, checkpoint).feed(batches)
            letters = driver.stop()
            reader.read()
            found = [(topic, each) for topic in shown for each in reader.records(topic)]
    return Found(
        [record_line(KafkaRecord(topic, each.key, each.value, each.headers)) for topic, each in found], letters, []
    )


def _refuse(case: Case, topology: Topology) -> None:
    """Refuse what memory can do, and a run on Spark with a broker of its own cannot.

    Raises:
        RunError: R745.
    """
    for step in topology.steps():
        window = step.window
        if window is not None and (window.range_ms or window.flush_ms):
            reason = f'window "{step.name}" ends with the time, and only --engine memory lets an hour pass at the end'
            raise bad(case.folder, reason, IN_MEMORY)
    for part in (*topology.sources(), *topology.sinks()):
        options = connection_settings(part.options) if isinstance(part, KafkaSource | KafkaSink) else {}
        for name in options:
            if name.startswith(SECURITY):
                reason = f'"{part.name}" has the option kafka.{name}, and the broker of a case is a plain one'
                raise bad(case.folder, reason, f"{IN_MEMORY}, or let the program have the option from its arguments")


def _check_names(
    app: Path,
    arguments: Sequence[str],
    topology: Topology,
    batches: Iterable[Step],
    written: Iterable[str],
    shown: Iterable[str],
) -> None:
    """Refuse what memory refuses: a misspelt topic or visit.

    Raises:
        RunError: R784, R720.
    """
    known = topology.visits()
    for name in (step.partition(" ")[0] for step in batches if isinstance(step, str)):
        if name not in known:
            raise unknown(VISIT, name, known)
    try:
        _check_topics(Feed(topology, None, _nothing), written, shown)
    except RunError:
        # A topology does not say what a program looks up: the program itself does.
        run = start(str(app), arguments)
        try:
            _check_topics(run.feed, written, shown)
        finally:
            run.close()


def _nothing() -> None:
    pass


def _check_topics(feed: Feed, written: Iterable[str], shown: Iterable[str]) -> None:
    for topic in written:
        feed.check(topic, is_new=True)
    for topic in {*shown} - {*written}:
        feed.check(topic, is_new=False)


def _read(topology: Topology) -> list[str]:
    """Return the topic of each source that gets records of Kafka; one may be there more than once."""
    return [each.topic for each in topology.sources() if isinstance(each, KafkaSource)]


class _Run:
    """One run of a case.

    Args:
        reader: Of the topics of the application's sources.
        checkpoint: Of the driver.
    """

    def __init__(
        self, case: Case, topology: Topology, cluster: Cluster, reader: Reader, driver: CaseDriver, checkpoint: Path
    ) -> None:
        self._writer, self._reader, self._driver = Writer(cluster, _partitioner(topology)), reader, driver
        self._checkpoint, self._read = checkpoint, _read(topology)
        self._tables = {each.topic for each in topology.sources() if isinstance(each, KafkaSource) and each.table}
        self._idle = float(case.setting("idle", IDLE_S))

    def feed(self, batches: Sequence[Step]) -> None:
        """Write records to their topics, and run visits; each when all before is done."""
        for number, step in enumerate(batches, 1):
            if isinstance(step, str):
                self._visit(step)
            else:
                self._write(step)
            self._driver.settle(self._expected, self._idle, is_last=number == len(batches))

    def _visit(self, step: str) -> None:
        from wallaroo_runtime.peer.local_gateway import local_gateway  # late: gRPC takes long to import
        from wallaroo_runtime.peer.visit import ask, away, wait

        name, _, metadata = step.partition(" ")
        with local_gateway(self._checkpoint, away(name)) as service:
            wait(service, name, ask(service, name, metadata.encode()))

    def _write(self, records: Sequence[KafkaRecord]) -> None:
        """Write a micro-batch: what is looked up first, then joined tables, then the rest at once."""
        looked_up = [record for record in records if record.topic not in self._read]
        tables = [record for record in records if record.topic in self._tables]
        others = [record for record in records if record.topic in self._read and record.topic not in self._tables]
        for group in filter(None, (looked_up, tables, others)):
            self._writer.write(group)
            if group is looked_up and len(looked_up) < len(records):
                time.sleep(LOOKUP_S)

    def _expected(self) -> int:
        """Return how many messages sources get of what their topics have now."""
        self._reader.read()
        return sum(len(self._reader.records(topic)) for topic in self._read)


def _partitioner(topology: Topology) -> str:
    """Return that of the application's sinks, for what it reads."""
    found = [sink.options.get("kafka.partitioner", "") for sink in topology.sinks() if isinstance(sink, KafkaSink)]
    return "fnv1a" if "fnv1a" in found else "murmur2"
