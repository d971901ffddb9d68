"""The progress of a query: from the plans in Spark's checkpoint, and from the counts of a running query."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from wallaroo_runtime.durable.directory import Directory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.storage.spark_log import last_batch

Topics = Mapping[str, Mapping[int, int]]  # offset of each partition, by topic


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a query: offsets in its sources, and counts of messages.

    Attributes:
        messages_in: Number of processed messages of the journal, since the checkpoint began.
        messages_out: Number of messages for sinks, since this run began.
        dead_letters: Number of dead letters, since the checkpoint began.
        batches: Number of micro-batches, since this run began.
        offsets: Offset in each journal up to which everything is processed; empty until one is known.
        unread: Number of records that Spark has still to read from topics after the latest micro-batch; None if it is
            not known.
        topics: Offset in each partition of each topic that Spark reads, as of the last run.
        bytes_by_file: Number of bytes of journals that tasks have read from files, since this run began.
        bytes_by_grpc: Number of bytes of journals that tasks have read from gateways, since this run began.
        records: Numbers of messages of sources that Spark reads, and of sinks that Spark writes.
        endings: Descriptions of worker processes that ended by themselves, by executor and process number.
        dead_letters_before: Number of dead letters from the beginning of the checkpoint to the start of this run.
        counts: Other counters since this run began, by name (`plan/counter.py`).
    """

    messages_in: int = 0
    messages_out: int = 0
    dead_letters: int = 0
    batches: int = 0
    offsets: tuple[int, ...] = ()
    bytes_by_file: int = 0
    bytes_by_grpc: int = 0
    records: RecordCount = field(default_factory=RecordCount)
    endings: Mapping[str, str] = field(default_factory=dict)
    dead_letters_before: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    topics: Topics = field(default_factory=dict)
    unread: int | None = 0

    @property
    def offset(self) -> int:
        """The sum of `offsets`."""
        return sum(self.offsets)

    def reached(self, offsets: Iterable[Any]) -> "Progress":
        """Return the progress after a micro-batch that ended at these offsets of Spark's sources."""
        of_journals = [offset for offset in offsets if isinstance(offset, Mapping) and "journal" in offset]
        return replace(
            self,
            messages_in=sum(int(offset["sequence"]) for offset in of_journals),
            offsets=tuple(int(offset["offset"]) for offset in of_journals),
        )


def progress_at(offsets: bytes) -> Progress:
    """Return the progress of a query at the end of a micro-batch, from Spark's file `offsets/<batch>`."""
    _version, _metadata, *lines = offsets.decode("utf-8").splitlines()
    sources = [json.loads(line) for line in lines if line != "-"]
    return replace(Progress().reached(sources), topics=_topics(sources))


def unread_records(sources: Iterable[Mapping[str, Any]], planned: Topics = MappingProxyType({})) -> int:
    """Return the number of records that Kafka's topics have after the end of a micro-batch, from Spark's report.

    Args:
        planned: End of the micro-batch that began last; its records count as unread until Spark reports it.

    Example:
        >>> report = [{"endOffset": '{"t": {"0": 5}}', "latestOffset": '{"t": {"0": 9, "1": 2}}'}]
        >>> unread_records(report), unread_records(report, {"t": {0: 7, 1: 3}})
        (6, 7)
    """
    ends = [(read_offset(source.get("endOffset")), read_offset(source.get("latestOffset"))) for source in sources]
    left = [(_topics([end]), _topics([latest])) for end, latest in ends]
    return sum(
        max(0, max(offset, planned.get(topic, {}).get(number, 0)) - end.get(topic, {}).get(number, 0))
        for end, latest in left
        for topic, numbers in latest.items()
        for number, offset in numbers.items()
    )


def read_offset(offset: Any) -> Any:
    """Return the offset of a source from a report of Spark. Spark may write it as a text that contains JSON."""
    return json.loads(offset) if isinstance(offset, str) else offset


def _topics(offsets: Iterable[Any]) -> Topics:
    """Return the offsets of Kafka's topics. If several sources read a partition, its lowest offset counts.

    Example:
        >>> _topics([{"journal": "0f", "offset": 9}, {"clicks": {"0": 7}}, {"clicks": {"0": 5, "1": 2}}])
        {'clicks': {0: 5, 1: 2}}
    """
    topics: dict[str, dict[int, int]] = {}
    for offset in offsets:
        for topic, ends in offset.items() if isinstance(offset, Mapping) else ():
            for number, end in ends.items() if isinstance(ends, Mapping) else ():
                known = topics.setdefault(topic, {})
                known[int(number)] = min(int(end), known.get(int(number), int(end)))
    return topics


def plan_elsewhere(files: Directory, topics: Topics) -> None:
    """Write a plan to Spark's checkpoint that ends at the offsets `topics`, so that reading continues there.

    If sources go on where records are gone, Spark passes over the records before the offset at which the last
    micro-batch ended. A planned micro-batch keeps the offsets of all other sources, since it may have been published.

    Args:
        files: Spark's own checkpoint.
        topics: New offset of each partition, by topic.
    """
    planned = last_batch(files.names("offsets"))
    content = files.read(f"offsets/{planned}") if planned >= 0 else None
    if content is None:
        return  # no micro-batch was planned, so nothing was read
    batch = max(planned, last_batch(files.names("commits")) + 1)
    files.write(f"offsets/{batch}", _ending_at(content, topics))


def _ending_at(offsets: bytes, topics: Topics) -> bytes:
    head, metadata, *lines = offsets.decode("utf-8").split("\n")
    for number, line in enumerate(lines):
        for topic, ends in _topics([json.loads(line)] if line.startswith("{") else []).items():
            if topic in topics:
                lines[number] = json.dumps({topic: {str(at): topics[topic][at] for at in ends if at in topics[topic]}})
    return "\n".join([head, metadata, *lines]).encode()


def progress_in(files: Directory, folder: str = "") -> Progress:
    """Return the progress that a checkpoint in any file system has recorded; all zero if the checkpoint is new.

    Args:
        files: The directory.
        folder: Folder of Spark's checkpoint in this directory, with a slash at its end.

    Raises:
        RunError: R698 if the plan of the last committed micro-batch is damaged.
    """
    done = last_batch(files.names(f"{folder}commits"))
    name = f"{folder}offsets/{done}"
    try:
        offsets = files.read(name) if done >= 0 else None
        return Progress() if offsets is None else progress_at(offsets)
    except (IsADirectoryError, ValueError, KeyError, TypeError) as error:
        raise RunError.of("R698", what=f"{files}/{name}", reason=f"it is no plan of Spark's; {error}") from error
