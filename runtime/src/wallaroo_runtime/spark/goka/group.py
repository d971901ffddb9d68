"""Continues groups that ran with Goka, a Go library: takes over the offsets of consumer groups and the tables' values.

In Goka, a group's consumer group has the name of the group. A processor writes a value to its table before it commits
the offset of the message. So no message is lost, but the last messages may count twice, as after a restart of Goka.

Offsets and tables stay in Kafka. The metadata of the offsets gets the checkpoint's id as a mark, because a second
checkpoint would count the same messages again. A later commit of Goka or of Kafka's tools removes the mark.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.key import readable
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.client import EARLIEST, LATEST
from wallaroo_runtime.kafka.offset import has_content
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.spark.goka.table import LANGUAGES, GokaTable, TableCount, load_tables
from wallaroo_runtime.spark.offset_log import journal_begin
from wallaroo_runtime.spark.source.kafka import KafkaAdmin
from wallaroo_runtime.spark.source.record import record_sources
from wallaroo_runtime.storage.place import JournalPlace
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource, Pipeline, Topology, has_records, is_table

NO_OFFSET = "-"
STATE = "GroupState"  # name of the class of a group's state in the topology, for every language
COMMAND = "kafka-consumer-groups.sh --bootstrap-server {brokers} --group {group} --topic {topic}"
RESET = f"{COMMAND} --reset-offsets --execute"
MARK = "wallaroo "  # beginning of a mark; the id of the checkpoint follows


@dataclass(frozen=True, slots=True)
class Begin:
    """The offsets at which a new checkpoint begins, and messages to the user about it.

    Attributes:
        lines: For each source, in Spark's order, its offsets as a line of the checkpoint's offset log.
        notes: Notes for the user about tables and groups that were taken over.
        findings: Further findings for the user.
    """

    lines: tuple[str, ...]
    notes: tuple[str, ...]
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """The offsets of a topic that a group reads: the first, the last, and those that Goka has committed.

    Attributes:
        begins: The first offset of each partition.
        ends: The offset after the last record of each partition.
        committed: The offsets that the group has committed, by partition.
        marks: Ids of checkpoints that began with these offsets, from the metadata of the offsets.
    """

    source: KafkaSource
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    committed: Mapping[int, int]
    marks: frozenset[str] = frozenset()

    @property
    def unread(self) -> list[int]:
        """Partitions that have records but no offset committed by the group."""
        return [number for number, at in self.begins.items() if number not in self.committed and at < self.ends[number]]


def continue_goka(
    session: SparkSession, plan: Plan, topology: Topology, journals: Sequence[JournalPlace], checkpoint: str, mark: str
) -> Begin:
    """Fill a new checkpoint with the values of Goka's tables, and return the offsets at which its sources begin.

    The caller writes these offsets to the checkpoint.

    Args:
        session: The session of the run.
        plan: The plan of the topology.
        topology: Its pipelines are the groups. A group without values or offsets from Goka begins as a new group.
        journals: The journals, which are the first sources of the query.
        checkpoint: Spark's own checkpoint, which is still empty.
        mark: The id of the whole checkpoint.

    Raises:
        RunError: R788 if a group cannot be continued, R672 if no broker answers, R673 if a topic is unknown, or the
            error of Spark if a topic cannot be read.
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
            check_committed(group.name, inputs)
            lines |= {each.source.path: line_of(group.name, each) for each in inputs}
        asked[group.name] = inputs
    if not lines:
        raise nothing_left(topology.name)
    counts = load_tables(session, plan, [table for _, table in tables], checkpoint)
    for name, inputs in asked.items():
        _mark(session, name, inputs, mark)
    counted = [(sink, counts.get(table.port, TableCount())) for sink, table in tables]
    begins = [journal_begin(journal.journal_id()) for journal in journals]
    sources = [record.source for record in record_sources(plan, topology)]
    notes = [f"table {sink.topic}: {count.keys:,} keys begin with Goka's values" for sink, count in counted]
    notes += [f"{each.name}: continues at the offsets of Goka's group" for each in sources if each.path in lines]
    return Begin(
        (*begins, *(lines.get(each.path, NO_OFFSET) for each in sources)),
        tuple(notes),
        tuple(double_of(sink.topic, count) for sink, count in counted if count.double),
    )


def refused(name: str, reason: str, fix: str) -> RunError:
    """Return the error that a group of Goka cannot be continued (R788).

    Args:
        name: Name of the group or of the application.
        reason: The reason, for the message.
        fix: The remedy.
    """
    return RunError.of("R788", name=name, reason=reason, fix=fix)


def nothing_left(application: str) -> RunError:
    """Return the error that Goka has left neither values nor offsets for an application (R788)."""
    reason = "no table of its groups has records, and no group has committed offsets"
    fix = "give groups and topics the names of Goka's program, or run with --fresh instead of --continue-goka"
    return refused(application, reason, fix)


def inputs_of(group: Pipeline) -> list[KafkaSource]:
    """Return the sources whose offsets Goka commits: inputs, and the loop (messages of a group to its own keys)."""
    sources = (source for source in group.sources if isinstance(source, KafkaSource))
    return [source for source in sources if has_records(source) and not source.table]


def _is_filled(session: SparkSession, table: KafkaSink) -> bool:
    with KafkaAdmin(session, table) as admin:
        return has_content(admin, table.topic)


def _asked(session: SparkSession, source: KafkaSource, group: str) -> Input:
    with KafkaAdmin(session, source) as admin:
        if members := admin.members(group):
            reason = f"its consumer group has members ({members}): a processor of Goka's runs, or was killed just now"
            fix = "stop it; if it was killed, wait for its session timeout, 10 s by default"
            raise refused(group, reason, fix)
        numbers = [number for number, _ in source.partitions] if source.partitions else admin.partitions(source.topic)
        begins, ends = (admin.offsets(source.topic, numbers, kind) for kind in (EARLIEST, LATEST))
        committed = {number: each for number, each in admin.committed(group, source.topic).items() if number in begins}
    marks = {text.removeprefix(MARK) for _, text in committed.values() if text.startswith(MARK)}
    return Input(source, begins, ends, {number: at for number, (at, _) in committed.items()}, frozenset(marks))


def check_marks(group: str, inputs: Sequence[Input], mark: str) -> None:
    """Raise R788 if another checkpoint has continued the group, because messages would count in both checkpoints.

    A checkpoint that continues a group writes its id, the mark, into the metadata of the group's offsets.
    """
    for each in inputs:
        if others := sorted(each.marks - {mark}):
            reason = f"another checkpoint ({others[0]}) has continued from its offsets of {each.source.topic}"
            fix = "run with that checkpoint; if it is lost, set the offsets to that checkpoint's last position with"
            raise refused(group, reason, f"{fix} `{_reset(group, each.source)} --to-offset N`")


def _mark(session: SparkSession, group: str, inputs: Sequence[Input], mark: str) -> None:
    for each in inputs:
        if each.committed:
            with KafkaAdmin(session, each.source) as admin:
                admin.commit(group, each.source.topic, each.committed, MARK + mark)


def check_committed(group: str, inputs: Sequence[Input]) -> None:
    """Raise R788 if a group has a table but no offsets: then nobody knows which messages the table counts."""
    first = next((each.source for each in inputs if each.unread), None)
    if first is None or any(each.committed for each in inputs):
        return
    reason = f"its table has records, but it has committed no offsets of {first.topic}"
    why = "Kafka drops the offsets of a group that is idle for 7 days"
    raise refused(group, reason, f"{why}; set them with `{_reset(group, first)} --to-datetime TIME`")


def line_of(group: str, entry: Input) -> str:
    """Return the offsets at which an input begins, as a line for the offset log in Spark's checkpoint.

    Raises:
        RunError: R788 if records would be left out that Goka may not have processed.
    """
    source, topic = entry.source, entry.source.topic
    for number, at in entry.committed.items():
        begin, end = entry.begins[number], entry.ends[number]
        if not begin <= at <= end:
            reason = f"it has committed offset {at} of partition {number} of {topic}, with offsets {begin} to {end}"
            fix = f"set it with `{_reset(group, source, number)}` and --to-earliest or --to-latest"
            raise refused(group, reason, fix)
    if entry.unread and source.start != "start":
        listed = ", ".join(map(str, entry.unread))
        reason = f"it has committed no offset for these partitions of {topic}, which have records: {listed}"
        command = _reset(group, source, *entry.unread)
        raise refused(group, reason, f"`{command} --to-latest` skips these records, --to-earliest reads them")
    offsets = {str(number): entry.committed.get(number, entry.begins[number]) for number in sorted(entry.begins)}
    return json.dumps({topic: offsets}, separators=(",", ":"))


def _reset(group: str, source: KafkaSource, *partitions: int) -> str:
    topic = f"{source.topic}:{','.join(map(str, partitions))}" if partitions else source.topic
    return RESET.format(brokers=source.brokers[0], group=group, topic=topic)


def table_of(plan: Plan, topology: Topology, group: Pipeline, sink: KafkaSink) -> GokaTable:
    """Describe the table topic of a group, whose values become states. The options are those of the first input.

    Raises:
        RunError: R788 if the pipeline that writes the table is no group.
    """
    step = next((step for step in group.steps if step.state is not None), None)
    component = topology.component(step.worker, f"{step.path}/state") if step else None
    language = topology.worker(step.worker).language if step else ""
    if step is None or component is None or not component.symbol.endswith(STATE) or language not in LANGUAGES:
        fix = f"leave out --continue-goka; a step of the program can read topic {sink.topic} and fill its states"
        raise refused(group.name, "a run can only continue groups of Goka's API in Python or Go", fix)
    like = replace(inputs_of(group)[0], start="start", partitions=None, table=True)
    source = replace(like, name=sink.name, topic=sink.topic, brokers=sink.brokers)
    nodes = (node for stage in plan.stages for node in stage.nodes if node.state)
    port = next(node.state_port for node in nodes if node.path == step.path)
    return GokaTable(source, port, language)


def double_of(topic: str, count: TableCount) -> Diagnostic:
    """Return the warning that some keys have values in several partitions of a topic (R789)."""
    return Diagnostic.of("R789", topic=topic, count=count.double, key=readable(count.example))
