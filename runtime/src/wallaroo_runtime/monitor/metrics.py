"""Exports the numbers of a run in the formats of Prometheus and OpenMetrics; docs/monitor.md lists the names."""

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from wallaroo_runtime.plan.counter import MESSAGES, RUN_COUNTERS
from wallaroo_runtime.service.histogram import Histogram

BOUNDS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000)
# Each entry: type of the metric, kind of its object, field of the object, help text.
TABLES: tuple[tuple[type[Any], str, str, str], ...] = (
    (GaugeMetricFamily, "source", "reachable", "Whether Kafka, a connector or files can give messages to a source."),
    (GaugeMetricFamily, "sink", "pending_messages", "Messages that wait for a sink."),
    (GaugeMetricFamily, "sink", "pending_bytes", "Bytes that wait for a sink."),
    (GaugeMetricFamily, "sink", "reachable", "Whether a sink's receiver is reached."),
    (GaugeMetricFamily, "state", "keys", "Keys, of the buckets that ran."),
    (GaugeMetricFamily, "state", "bytes", "Bytes, of the buckets that ran."),
    (CounterMetricFamily, "worker", "restarts", "Restarts of a worker."),
    (GaugeMetricFamily, "worker", "memory_bytes", "Memory of a worker."),
    (GaugeMetricFamily, "process", "memory_bytes", "Memory of a process."),
)
STEP_LABELS = ("application", "pipeline", "step", "path")


class _Collector:
    """Yields the metrics of a run at one moment, for Prometheus' client library.

    Args:
        document: Document of the board.
        latencies: Latencies of the whole run, by name.
    """

    def __init__(self, document: Mapping[str, Any], latencies: Mapping[str, Histogram]) -> None:
        self._document, self._latencies = document, latencies
        self._application = document["application"]

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics. Prometheus' client library calls this method."""
        yield from self._run()
        yield from self._steps()
        yield from self._tables()
        yield self._latency()

    def _one(self, kind: type[Any], name: str, text: str, value: float) -> Metric:
        family: Metric = kind(f"wallaroo_{name}", text, labels=("application",))
        family.add_metric((self._application,), value)  # type: ignore[attr-defined]
        return family

    def _run(self) -> Iterator[Metric]:
        document, run = self._document, self._document["run"]
        counter, gauge = CounterMetricFamily, GaugeMetricFamily
        yield self._one(gauge, "up", "Whether the application runs.", document["state"] == "running")
        yield self._one(counter, "messages_in", "Messages that arrived in this run.", run["messages_in"])
        yield self._one(counter, "messages_out", "Messages that receivers took in this run.", run["messages_out"])
        text = "Messages that user code failed on, or that a sink never takes, in this run."
        yield self._one(counter, "dead_letters", text, run["dead_letters"])
        yield from (self._one(counter, name, text, run[name]) for name, text in RUN_COUNTERS.items())
        yield self._one(counter, "micro_batches", "Micro-batches of this run.", run["batches"])
        if document["lag"]["messages"] is not None:  # if the lag is not known yet, a 0 would keep an alarm silent
            yield self._one(gauge, "lag_messages", "Messages that arrived, not processed.", document["lag"]["messages"])
            text = "How long the oldest message that is not processed has been waiting."
            yield self._one(gauge, "lag_seconds", text, document["lag"]["seconds"])
        text = "Runs in a row that failed before this one."
        yield self._one(gauge, "failed_runs", text, document["earlier"]["failures"])
        lag = sum(gateway["lag_bytes"] for gateway in document["gateways"])
        yield self._one(gauge, "journal_lag_bytes", "Bytes of journals that are not processed.", lag)
        phases = gauge("wallaroo_micro_batch_phase_seconds", "Latest micro-batch.", labels=("application", "phase"))
        for phase, duration in document["batch"].get("phases_ms", {}).items():
            phases.add_metric((self._application, phase), duration / 1000)
        yield phases

    def _steps(self) -> Iterator[Metric]:
        for name, text in (MESSAGES | self._document["counters"]).items():
            family = CounterMetricFamily(f"wallaroo_step_{name}", text, labels=STEP_LABELS)
            for part in self._document["parts"]:
                family.add_metric((self._application, part["pipeline"], part["name"], part["path"]), part[name])
            yield family

    def _tables(self) -> Iterator[Metric]:
        document = self._document
        states = [{**state, "name": ",".join(state["names"])} for state in document["states"]]
        sinks = [{**sink, "reachable": sink.get("state") != "unreachable"} for sink in document["sinks"]]
        sources = [{**part, "reachable": not part["outage"]} for part in document["parts"] if part["role"] == "source"]
        rows = {"source": sources, "sink": sinks, "state": states}
        rows |= {"worker": document["workers"], "process": document["processes"]}
        for kind, label, name, text in TABLES:
            more = ("path",) if label in ("source", "sink") else ()  # the path distinguishes those with equal names
            family = kind(f"wallaroo_{label}_{name}", text, labels=("application", label, *more))
            for row in rows[label]:
                values = (row[field] for field in ("name", *more))
                family.add_metric((self._application, *values), row.get(name, 0))
            yield family

    def _latency(self) -> Metric:
        text = "Time that messages took, by stage."
        family = HistogramMetricFamily("wallaroo_latency_seconds", text, labels=("application", "stage"))
        for stage, histogram in self._latencies.items():
            counts = zip(BOUNDS_MS, histogram.below(BOUNDS_MS), strict=True)
            buckets = [(str(bound / 1000), float(count)) for bound, count in counts]
            buckets.append(("+Inf", float(histogram.count)))
            family.add_metric((self._application, stage), buckets, histogram.sum_ms / 1000)
        return family


def render(document: Mapping[str, Any], latencies: Mapping[str, Histogram], accept: str) -> tuple[bytes, str]:
    """Return the metrics of a run as the body of an HTTP answer, and its content type.

    Args:
        document: Document of the board.
        latencies: Latencies of the whole run, by name.
        accept: The request's header `Accept`, which chooses OpenMetrics or the text format of Prometheus.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(document, latencies))
    write, content_type = exposition.choose_encoder(accept)
    return write(registry), content_type
