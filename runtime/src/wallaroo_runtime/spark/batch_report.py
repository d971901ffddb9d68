"""Reports of a query to the monitor: the counts of one micro-batch, or of real-time mode since the last report."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wallaroo_runtime.worker.step_count import StepCounts, add_up

Stores = dict[tuple[str, int], tuple[int, int]]  # by stage and bucket: keys, bytes of the log


def stores_of(value: Mapping[str, Mapping[str, tuple[int, int]]]) -> Stores:
    """Return the sizes of state logs by stage and bucket, from the nested JSON that the operators in Java report."""
    return {(stage, int(bucket)): (keys, size) for stage, of in value.items() for bucket, (keys, size) in of.items()}


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The counts of a published micro-batch, for the monitor.

    Attributes:
        batch: Number of the micro-batch.
        begun_ms: When the tasks of the micro-batch began, in milliseconds since 1970.
        steps: Counts of sources, steps and sinks, by path.
        arrived: Number of messages by the time of their arrival, in milliseconds since 1970, where that time is known.
        stores: Number of keys and bytes of the log of each bucket that was processed, by stage and bucket.
        emitted: Number of published messages, by port of the sink.
    """

    batch: int
    begun_ms: int
    published_ms: int
    steps: StepCounts = field(default_factory=dict)
    arrived: Counter[int] = field(default_factory=Counter)
    stores: Stores = field(default_factory=dict)
    emitted: Counter[int] = field(default_factory=Counter)

    def add(self, steps: StepCounts, arrived: Mapping[int, int], stores: Stores) -> None:
        """Add the counts of one task."""
        add_up(self.steps, steps)
        self.arrived.update(arrived)
        self.stores.update(stores)


@dataclass(frozen=True, slots=True)
class LiveReport:
    """The counts of a query in real-time mode since its last report, for the monitor.

    Attributes:
        offset: All output for input before this offset of the journal is in the outbox. -1 if that is not known yet.
        steps: Counts of sources, steps and sinks since the last report, by path.
        stores: Number of keys and bytes of the log of each bucket that was processed, by stage and bucket.
        times: Number of messages by their latency in milliseconds, by the name of the measured part of the latency.
    """

    offset: int = -1
    steps: StepCounts = field(default_factory=dict)
    stores: Stores = field(default_factory=dict)
    times: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


class LiveReports:
    """Converts the totals of a query in real-time mode to reports. A report has the counts since the report before.

    Example:
        >>> reports = LiveReports()
        >>> numbers = {"offset": 9, "stores": {"s1": {"3": [4, 5]}}, "times": {}}
        >>> [reports.read({**numbers, "steps": {"0": {"messages_in": count}}}).steps for count in (3, 5)]
        [{'0': Counter({'messages_in': 3})}, {'0': Counter({'messages_in': 2})}]
    """

    def __init__(self) -> None:
        self._steps: StepCounts = {}

    def read(self, report: Mapping[str, Any]) -> LiveReport:
        """Return the counts since the last call.

        Args:
            report: The totals of the query, the result of `RealTime.numbers` in Java.
        """
        before, self._steps = self._steps, {path: Counter(counts) for path, counts in report["steps"].items()}
        times = {stage: {int(ms): count for ms, count in counts.items()} for stage, counts in report["times"].items()}
        steps = {path: counts - before.get(path, Counter()) for path, counts in self._steps.items()}
        return LiveReport(report["offset"], steps, stores_of(report["stores"]), times)
