"""Reads the input of cases whose applications read topics, and returns the output as lines."""

from collections.abc import Iterator
from pathlib import Path

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo_runtime.case.case import Case, bad, reason_of
from wallaroo_runtime.case.record_line import parse_record, record_line
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.topology.model import Topology

VISIT = "visit "
Step = list[KafkaRecord] | str  # the records of a micro-batch, or a visit as `NAME METADATA`


def feed_records(case: Case, run: MemoryRun) -> None:
    """Write the records of a case to topics, and run its visits, in the order of the input files.

    Raises:
        RunError: R745 if a file cannot be read, R721 if a line is no record, or the application cannot continue.
    """
    for item in case.setting("input", []):
        for step in steps(case.folder / item["file"]):
            if isinstance(step, str):
                name, _, metadata = step.partition(" ")
                run.visit(name, metadata)
            else:
                run.produce(step)


def steps(path: Path) -> Iterator[Step]:
    """Yield the micro-batches and visits of an input file. An empty line in the file ends a micro-batch.

    Raises:
        RunError: R745 if the file cannot be read, R721 if a line is no record.
    """
    batch: list[KafkaRecord] = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise bad(path, reason_of(error), "correct the file, or its kind in case.toml") from error
    for number, line in enumerate([*lines, ""], 1):
        is_visit = line.startswith(VISIT)
        if line and not is_visit:
            batch.append(record_of(line, number, str(path)))
            continue
        if batch:
            yield batch
            batch = []
        if is_visit:
            yield line.removeprefix(VISIT)


def record_of(line: str, number: int, source: str) -> KafkaRecord:
    """Return the record that a line describes. In the error, `number` and `source` say where the line is.

    Raises:
        RunError: R721 if the line is no record.
    """
    try:
        return parse_record(line)
    except ValueError as error:
        raise RunError.of(
            "R721",
            USAGE,
            place=f"line {number} of {source}",
            value=shown(line),
            reason=error,
            fix="write TOPIC KEY VALUE, with HEADER=VALUE at the end where it has headers, and - for no value",
        ) from error


def topic_lines(case: Case, run: MemoryRun) -> list[str]:
    """Return the output of a case as lines: the records of the topics that its settings name, or of all written topics.

    Raises:
        RunError: R720 if there is no such topic.
    """
    topics = case.setting("topics", written_topics(run.topology))
    return [record_line(record) for topic in topics for record in run.topic(topic)]


def written_topics(topology: Topology) -> list[str]:
    """Return the topics that an application writes, without repetitions."""
    return list(dict.fromkeys(sink.place for sink in topology.sinks() if sink.kind == "kafka"))
