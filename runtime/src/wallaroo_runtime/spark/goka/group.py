"""Continues the groups of Goka's own processors in Kafka: the offsets of their consumer groups, and their tables.

Goka names a group's consumer group as the group. What a processor has set in its table is there before it commits the
offset of the message; so a message at the border may count twice, as Goka itself counts it then, and none is lost.

What a checkpoint has taken over stays in Kafka, marked with the checkpoint's id in the metadata of the group's offsets:
a second checkpoint would count the same messages again. A later commit of Goka or of Kafka's tools takes the mark away.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.key import readable
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.offset import EARLIEST, LATEST, has_content
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.spark.goka.table import LANGUAGES, GokaTable, TableCount, load_tables
from wallaroo_runtime.spark.planned import to_offset
from wallaroo_runtime.spark.source.kafka import KafkaAdmin
from wallaroo_runtime.spark.source.record import record_sources
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.place import JournalPlace
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource, Pipeline, Topology, has_records, is_table

NO_OFFSET = "-"
STATE = "GroupState"  # class of a group's state, in every language
COMMAND = "kafka-consumer-groups.sh --bootstrap-server {brokers} --group {group} --topic {topic}"
RESET = f"{COMMAND} --reset-offsets --execute"
MARK = "wallaroo "  # and the id of the checkpoint


@dataclass(frozen=True, slots=True)
class Begin:
    """Where a new checkpoint begins.

    Attributes:
        lines: What Spark's checkpoint has of each source, in its order.
        notes: For the user: what was taken over.
        findings: What the user should know besides.
    """

    lines: tuple[str, ...]
    notes: tuple[str, ...]
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """Kafka's offsets of an input of a group.

    Attributes:
        begins: The first offset of each partition.
        ends: The next one.
        committed: Those that the group has committed.
        marks: The metadata of them: the ids of checkpoints that begin with them, after `MARK`.
    """

    source: KafkaSource
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    committed: Mapping[int, int]
    marks: frozenset[str] = frozenset()

    @property
    def unread(self) -> list[int]:
        """Partitions with records of which the group has committed no offset."""
        return [number for number, at in self.begins.items() if number not in self.committed and at < self.ends[number]]


def continue_goka(
    session: SparkSession, plan: Plan, topology: Topology, journals: Sequence[JournalPlace], checkpoint: str, mark: str
) -> Begin:
    """Write the first states of all groups into a checkpoint of Spark's; the caller writes where its sources begin.

    Args:
        session: That of the run.
        plan: Of the topology.
        topology: Whose pipelines are groups; one that Goka has left nothing of begins as a new one.
        journals: The first sources of the query.
        checkpoint: Spark's own; nothing is there yet.
        mark: The id of the whole checkpoint.

    Raises:
        RunError: R788, a group cannot be continued; R672 or R673, Kafka does not say. What else reading a topic raises.
    """
    lines: dict[str, str] = {}
    asked: dict[str, list[Input]] = {}
    tables: list[tuple[KafkaSink, GokaTable]] = []
    for group in topology.pipelines:
        inputs = [_asked(session, source, group.name) for source in inputs_of(group)]
        check_marks(group.name, inputs, mark)
        table = next((sink for sink in group.sinks if is_table(sink) and _is_filled(session, sink)), None)
        if table is not None:
            tables.append((table, table_of(plan, topology, group, table)))
        if table is not None or any(each.committed for each in inputs):
            check_some(group.name, inputs)
            lines |= {each.source.path: line_of(group.name, each) for each in inputs}
        asked[group.name] = inputs
    if not lines:
        raise nothing_left(topology.name)
    counts = load_tables(session, plan, [table for _, table in tables], checkpoint)
    for name, inputs in asked.items():
        _mark(session, name, inputs, mark)
    counted = [(sink, counts.get(table.port, TableCount())) for sink, table in tables]
    begins = [json.dumps(to_offset(Position(0, 0, journal.journal_id()))) for journal in journals]
    sources = [record.source for record in record_sources(plan, topology)]
    notes = [f"table {sink.topic}: {count.keys:,} keys begin with Goka's values" for sink, count in counted]
    notes += [f"{each.name}: continues at the offsets of Goka's group" for each in sources if each.path in lines]
    return Begin(
        (*begins, *(lines.get(each.path, NO_OFFSET) for each in sources)),
        tuple(notes),
        tuple(double_of(sink.topic, count) for sink, count in counted if count.double),
    )


def refused(name: str, reason: str, fix: str) -> RunError:
    """Return an R788.

    Args:
        name: Of the group, or of the application.
        reason: Why.
        fix: What to do.
    """
    return RunError.of("R788", name=name, reason=reason, fix=fix)


def nothing_left(application: str) -> RunError:
    """Return the R788 for an application of which Goka has left neither values nor offsets."""
    reason = "no table of its groups has records, and no group has committed offsets"
    fix = "name groups and topics as Goka's program does; or run it with --fresh in place of --continue-goka"
    return refused(application, reason, fix)


def inputs_of(group: Pipeline) -> list[KafkaSource]:
    """Return the sources whose offsets Goka commits: inputs and the loop."""
    sources = (source for source in group.sources if isinstance(source, KafkaSource))
    return [source for source in sources if has_records(source) and not source.table]


def _is_filled(session: SparkSession, table: KafkaSink) -> bool:
    with KafkaAdmin(session, table) as admin:
        return has_content(admin, table.topic)


def _asked(session: SparkSession, source: KafkaSource, group: str) -> Input:
    with KafkaAdmin(session, source) as admin:
        if members := admin.members(group):
            reason = f"its consumer group has members ({members}): a processor of Goka's runs, or was killed just now"
            fix = "stop it; the broker forgets one that was killed after its session timeout, 10 s by default"
            raise refused(group, reason, fix)
        numbers = [number for number, _ in source.partitions] if source.partitions else admin.partitions(source.topic)
        begins, ends = (admin.offsets(source.topic, numbers, kind) for kind in (EARLIEST, LATEST))
        committed = {number: each for number, each in admin.committed(group, source.topic).items() if number in begins}
    marks = {text.removeprefix(MARK) for _, text in committed.values() if text.startswith(MARK)}
    return Input(source, begins, ends, {number: at for number, (at, _) in committed.items()}, frozenset(marks))


def check_marks(group: str, inputs: Sequence[Input], mark: str) -> None:
    """Refuse a group with which another checkpoint has begun: messages that it has counted would count again."""
    for each in inputs:
        if others := sorted(each.marks - {mark}):
            reason = f"another checkpoint ({others[0]}) has begun with its offsets of {each.source.topic}"
            fix = "run with that checkpoint; if it is lost, set the offsets to where that has come with"
            raise refused(group, reason, f"{fix} `{_reset(group, each.source)} --to-offset N`")


def _mark(session: SparkSession, group: str, inputs: Sequence[Input], mark: str) -> None:
    for each in inputs:
        if each.committed:
            with KafkaAdmin(session, each.source) as admin:
                admin.commit(group, each.source.topic, each.committed, MARK + mark)


def check_some(group: str, inputs: Sequence[Input]) -> None:
    """Refuse a group with a table whose offsets are gone: which messages its values have counted, nobody knows."""
    first = next((each.source for each in inputs if each.unread), None)
    if first is None or any(each.committed for each in inputs):
        return
    reason = f"its table has records, but it has committed no offsets of {first.topic}"
    why = "Kafka drops those of a group that is idle for 7 days"
    raise refused(group, reason, f"{why}; set them with `{_reset(group, first)} --to-datetime TIME`")


def line_of(group: str, entry: Input) -> str:
    """Return where an input begins, as Spark's checkpoint has it.

    Raises:
        RunError: R788, records would be left out that Goka may not have processed.
    """
    source, topic = entry.source, entry.source.topic
    for number, at in entry.committed.items():
        begin, end = entry.begins[number], entry.ends[number]
        if not begin <= at <= end:
            reason = f"it has committed offset {at} of partition {number} of {topic}, which has {begin} to {end}"
            fix = f"set it with `{_reset(group, source, number)}` and --to-earliest or --to-latest"
            raise refused(group, reason, fix)
    if entry.unread and source.start != "start":
        listed = ", ".join(map(str, entry.unread))
        reason = f"it has committed no offset of partitions of {topic} that have records: {listed}"
        command = _reset(group, source, *entry.unread)
        raise refused(group, reason, f"`{command} --to-latest` leaves them out, --to-earliest reads them")
    offsets = {str(number): entry.committed.get(number, entry.begins[number]) for number in sorted(entry.begins)}
    return json.dumps({topic: offsets}, separators=(",", ":"))


def _reset(group: str, source: KafkaSource, *partitions: int) -> str:
    topic = f"{source.topic}:{','.join(map(str, partitions))}" if partitions else source.topic
    return RESET.format(brokers=source.brokers[0], group=group, topic=topic)


def table_of(plan: Plan, topology: Topology, group: Pipeline, sink: KafkaSink) -> GokaTable:
    """Return how a table is read: as the group's inputs are, which have the same brokers and settings.

    Raises:
        RunError: R788, what writes the table is no group.
    """
    step = next((step for step in group.steps if step.state is not None), None)
    component = topology.component(step.worker, f"{step.path}/state") if step else None
    language = topology.worker(step.worker).language if step else ""
    if step is None or component is None or not component.symbol.endswith(STATE) or language not in LANGUAGES:
        fix = f"leave out --continue-goka; a step of the program's may read topic {sink.topic} and fill its states"
        raise refused(group.name, "it is no group of Goka's API in Python or Go, whose states alone are known", fix)
    like = replace(inputs_of(group)[0], start="start", partitions=None, table=True)
    source = replace(like, name=sink.name, topic=sink.topic, brokers=sink.brokers)
    nodes = (node for stage in plan.stages for node in stage.nodes if node.state)
    port = next(node.state_port for node in nodes if node.path == step.path)
    return GokaTable(source, port, language)


def double_of(topic: str, count: TableCount) -> Diagnostic:
    """Return an R789."""
    return Diagnostic.of("R789", topic=topic, count=count.double, key=readable(count.example))
