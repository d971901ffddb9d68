"""Measures the latency of messages and its parts: until the journal, the engine, the egress and the sinks have them."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wallaroo_runtime.service.histogram import Histogram
from wallaroo_runtime.spark.batch_report import BatchReport

RECENT_S = 300.0
SLICE_S = 30.0
STAGES = ("read", "journal", "wait", "compute", "output", "deliver", "commit", "end_to_end")
MOST_BATCHES = 10_000
SETTLED_MS = 2000  # a status of the egress is never older than this


class Latency:
    """Two histograms of latencies: of the whole run, and of the last five minutes."""

    def __init__(self) -> None:
        self.total = Histogram()
        self._slices: deque[tuple[float, Histogram]] = deque()

    def add(self, values_ms: Mapping[int, int], now: float) -> None:
        """Add values to both histograms.

        Args:
            values_ms: The number of occurrences of each value in milliseconds.
            now: Seconds of a clock that never goes back.
        """
        if not self._slices or now - self._slices[-1][0] >= SLICE_S:
            self._slices.append((now, Histogram()))
        for value, count in values_ms.items():
            self.total.add(value, count)
            self._slices[-1][1].add(value, count)

    def to_json(self, now: float) -> dict[str, dict[str, float | None]]:
        """Return count, mean, percentiles and maximum, for the last five minutes and for the whole run."""
        while self._slices and now - self._slices[0][0] > RECENT_S:
            self._slices.popleft()
        recent = Histogram()
        for _, histogram in self._slices:
            recent.merge(histogram)
        return {"five_minutes": recent.to_json(), "run": self.total.to_json()}


@dataclass(frozen=True, slots=True)
class _Outstanding:
    report: BatchReport
    ends: Mapping[int, int]  # by port: the sink's total number of messages after this micro-batch


class Latencies:
    """Computes the latencies of a run in milliseconds, from the reports of micro-batches and the status of the egress.

    `wait` is from the arrival at the gateway to the start of the micro-batch's tasks. `compute` is from there to the
    publication, `deliver` from there until all sinks of the egress have taken the output. `end_to_end` is the sum.
    In real-time mode, gateway, engine and egress measure the latencies of single messages, and report the counts.
    """

    def __init__(self) -> None:
        self._latencies = {stage: Latency() for stage in STAGES}
        self._published: Counter[int] = Counter()
        self._outstanding: deque[_Outstanding] = deque(maxlen=MOST_BATCHES)
        self._ports: frozenset[int] = frozenset()
        self._egress: Mapping[str, Any] = {}
        self._gateways: dict[int, Mapping[str, Any]] = {}

    def begin(self, egress: Mapping[str, Any]) -> None:
        """Record the status of the egress before the first micro-batch, to compare later statuses with it."""
        self._egress = egress
        for sink in egress.get("sinks", ()):
            self._published[sink["port"]] = _done(sink) + sink["pending_messages"]
        self._ports = frozenset(self._published)

    def publish(self, report: BatchReport, now: float) -> None:
        """Count the latencies of a published micro-batch. Note the output that sinks must deliver now.

        Args:
            report: Report of the micro-batch.
            now: Seconds of a clock that never goes back.
        """
        wait, compute = Counter[int](), report.published_ms - report.begun_ms
        for arrived, count in report.arrived.items():
            wait[max(0, report.begun_ms - arrived)] += count
        self._latencies["wait"].add(wait, now)
        self._latencies["compute"].add({compute: wait.total()}, now)
        ports = self._ports & set(report.emitted)
        for port in ports:
            self._published[port] += report.emitted[port]
        self._outstanding.append(_Outstanding(report, {port: self._published[port] for port in ports}))

    def add(self, times: Mapping[str, Mapping[int, int]], now: float) -> None:
        """Add counts of messages that engine or egress have measured, in real-time mode.

        Args:
            times: Number of messages by their latency in milliseconds, by the name of the latency, e.g. `wait`.
            now: Seconds of a clock that never goes back.
        """
        for stage, counts in times.items():
            self._latencies[stage].add(counts, now)

    def look_at(self, gateways: Sequence[Mapping[str, Any]], now: float) -> None:
        """Add the counts of the gateways' statuses, in real-time mode. A gateway counts from the start of its run."""
        for number, status in enumerate(gateways):
            if "latency_ms" in status:
                self.add(_since(self._gateways.get(number, {}), status), now)
                self._gateways[number] = status

    def look(self, egress: Mapping[str, Any], now_ms: int, now: float) -> None:
        """Record how many messages sinks have taken, and the latency of each micro-batch that is now delivered.

        Args:
            egress: Status of the egress.
            now_ms: Milliseconds since 1970.
            now: Seconds of a clock that never goes back.
        """
        if "live" in egress:
            self.add(_since(self._egress, egress), now)
            self._egress = egress
        sinks = egress.get("sinks", ())
        taken = {sink["port"]: _done(sink) for sink in sinks}
        idle = {sink["port"] for sink in sinks if not sink["pending_messages"]}
        while self._outstanding:
            first = self._outstanding[0]
            is_settled = now_ms - first.report.published_ms > SETTLED_MS
            if any(end > taken.get(port, 0) and not (is_settled and port in idle) for port, end in first.ends.items()):
                return
            self._outstanding.popleft()
            self._deliver(first, now_ms, now)
        # If a micro-batch of an earlier run was published again, its output is not delivered again.
        self._published.update({port: taken[port] - self._published[port] for port in idle & self._ports})

    def _deliver(self, done: _Outstanding, now_ms: int, now: float) -> None:
        report = done.report
        end = now_ms if done.ends else report.published_ms
        total = Counter[int]()
        for arrived, count in report.arrived.items():
            total[max(0, end - arrived)] += count
        self._latencies["end_to_end"].add(total, now)
        if done.ends:
            self._latencies["deliver"].add({max(0, end - report.published_ms): total.total()}, now)

    def histograms(self) -> Mapping[str, Latency]:
        """Return the histograms of each part of the latency by its name, and of the whole as `end_to_end`."""
        return self._latencies

    def to_json(self, now: float) -> dict[str, Any]:
        """Return count, percentiles and maximum of each latency by its name."""
        return {stage: latency.to_json(now) for stage, latency in self._latencies.items()}


def _done(sink: Mapping[str, Any]) -> int:
    """Return the number of messages that a sink has taken or refused."""
    return int(sink["messages"]) + int(sink.get("refused", 0))


def _since(before: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Mapping[int, int]]:
    """Return how much the latency counts of a process grew between two statuses. A new process begins at 0."""
    is_same = (before.get("pid"), before.get("start_time")) == (status.get("pid"), status.get("start_time"))
    old, new = _counted(before) if is_same else {}, _counted(status)
    return {
        stage: {int(ms): more for ms, count in counts.items() if (more := count - old.get(stage, {}).get(ms, 0))}
        for stage, counts in new.items()
    }


def _counted(status: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    counted: Mapping[str, Mapping[str, int]] = status.get("live", status).get("latency_ms", {})
    return counted
