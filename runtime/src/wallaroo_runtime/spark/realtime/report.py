"""Makes reports for the monitor from the counts of the operators."""

import json
from collections import Counter

from wallaroo_runtime.spark.batch_report import LiveReport, stores_of
from wallaroo_runtime.worker.step_count import StepCounts


class LiveReports:
    """Makes reports for the monitor, which have only the counts since the last report.

    Example:
        >>> reports = LiveReports()
        >>> numbers = '{"offset": 9, "steps": {"0": {"messages_in": %d}}, "stores": {"s1": {"3": [4, 5]}}, "times": {}}'
        >>> reports.read(numbers % 3).steps, reports.read(numbers % 5).steps
        ({'0': Counter({'messages_in': 3})}, {'0': Counter({'messages_in': 2})})
    """

    def __init__(self) -> None:
        self._steps: StepCounts = {}

    def read(self, numbers: str) -> LiveReport:
        """Return the new counts.

        Args:
            numbers: The result of the operators' `RealTime.numbers`.
        """
        report = json.loads(numbers)
        before, self._steps = self._steps, {path: Counter(counts) for path, counts in report["steps"].items()}
        times = {stage: {int(ms): count for ms, count in counts.items()} for stage, counts in report["times"].items()}
        steps = {path: counts - before.get(path, Counter()) for path, counts in self._steps.items()}
        return LiveReport(report["offset"], steps, stores_of(report["stores"]), times)
