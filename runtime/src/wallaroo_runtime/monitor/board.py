"""Collects the numbers of a run in one JSON document, which the monitor serves over HTTP."""

import json
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.end_note import running_note
from wallaroo_runtime.monitor.delivery import Latencies
from wallaroo_runtime.monitor.rate import Lag, Rates
from wallaroo_runtime.plan.counter import COUNTERS, MESSAGES, RUN_COUNTERS
from wallaroo_runtime.plan.graph import edges_of, inputs_of
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.service.driver import DRIVER_FILE, read_note
from wallaroo_runtime.spark.batch_report import BatchReport, LiveReport, Stores
from wallaroo_runtime.topology.model import Part, Source, Step, Topology
from wallaroo_runtime.worker.step_count import StepCounts, add_up, refusal

KEPT_FINDINGS = 100
VERSION = 1  # version of the document
PHASES = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")


@dataclass(frozen=True, slots=True)
class Sample:
    """The numbers and statuses of a run's processes at one moment. The board makes its document from them.

    Attributes:
        numbers: Numbers of the run, as in the output of `wallaroo run --json`.
        gateways: Status of each gateway.
        egress: Status of the egress.
        batch: Spark's report of the latest micro-batch.
        workers: Workers on this machine: name, language, pid, restarts, memory.
        processes: The other processes of the run on this machine.
        processed: For each gateway, the offset of its journal up to which input is committed; empty if not known.
        outages: Outages of the sources that Spark reads, by path of the source.
    """

    numbers: Mapping[str, Any] = field(default_factory=dict)
    gateways: Sequence[Mapping[str, Any]] = ()
    egress: Mapping[str, Any] = field(default_factory=dict)
    batch: Mapping[str, Any] = field(default_factory=dict)
    workers: Sequence[Mapping[str, Any]] = ()
    processes: Sequence[Mapping[str, Any]] = ()
    processed: Sequence[int] = ()
    outages: Mapping[str, Diagnostic] = field(default_factory=dict)


class Board:
    """Collects the reports of a run, and makes the JSON document that the monitor serves.

    Any thread may call `tell_batch`, `tell_live`, `read` and `wait`. Other methods are for the thread of the run.

    Args:
        topology: Topology of the application.
        plan: Plan of the topology.
        checkpoint: Directory of the run.

    Attributes:
        checkpoint: Directory of the run.
        is_ended: Whether `end` was called, so that no document follows the last one.
    """

    def __init__(self, topology: Topology, plan: Plan, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self._topology, self._plan = topology, plan
        self._outputs = frozenset(step.path for step in topology.steps() if step.kind == "output")
        self.is_ended = False
        self._earlier = running_note(read_note(checkpoint / DRIVER_FILE))
        self._started, self._state = time.time(), "starting"
        self._reports: deque[BatchReport | LiveReport] = deque()
        self._processed_bytes = -1  # processed bytes of the journal, in real-time mode
        self._steps: StepCounts = {}
        self._stores: Stores = {}
        self._refused = Counter[int]()  # by port, since the checkpoint began
        self._rates, self._lag, self.latencies = Rates(), Lag(), Latencies()
        self._findings: deque[dict[str, Any]] = deque(maxlen=KEPT_FINDINGS)
        self._sample = Sample()
        self._changed = threading.Condition()
        self._number, self._document, self._text = 0, dict[str, Any](), "{}"
        self._publish()

    def begin(self, egress: Mapping[str, Any]) -> None:
        """Record the status of the egress before the first micro-batch, to compare later statuses with it."""
        self.latencies.begin(egress)
        self._refused |= _refused_of(egress)

    def tell_batch(self, report: BatchReport) -> None:
        """Queue the report of a micro-batch. `look` processes it."""
        self._reports.append(report)

    def tell_live(self, report: LiveReport) -> None:
        """Queue a report of a query in real-time mode, which has the numbers since the previous report."""
        self._reports.append(report)

    def warn(self, finding: Diagnostic) -> None:
        """Record a warning, which the next document shows."""
        self._findings.append({"time": _iso(time.time()), **finding.to_json()})

    def look(self, egress: Mapping[str, Any]) -> None:
        """Process the queued reports, and count the output that sinks have taken. The caller repeats this often.

        Args:
            egress: Status of the egress.
        """
        now = time.monotonic()
        for _ in range(len(self._reports)):
            report = self._reports.popleft()
            add_up(self._steps, report.steps)
            self._stores.update(report.stores)
            if isinstance(report, BatchReport):
                self.latencies.publish(report, now)
            else:
                self.latencies.add(report.times, now)
                self._processed_bytes = report.offset
        refused = _refused_of(egress)
        for path, port in self._plan.ports.items():
            if (more := refused[port] - self._refused[port]) > 0:
                add_up(self._steps, {path: refusal(more)})
        self._refused |= refused
        self.latencies.look(egress, time.time_ns() // 1_000_000, now)

    def update(self, state: str, sample: Sample) -> None:
        """Make a new document with the present numbers, and wake the readers that wait for it."""
        self._state, self._sample = state, sample
        if self._processed_bytes >= 0:
            self.latencies.look_at(sample.gateways, time.monotonic())
        self._publish()

    def end(self) -> None:
        """Make the last document of the run, with the state `stopped`."""
        self._state, self.is_ended = "stopped", True
        self._publish()

    def _publish(self) -> None:
        document = self._make()
        text = json.dumps(document, ensure_ascii=False)
        with self._changed:
            self._number, self._document, self._text = self._number + 1, document, text
            self._changed.notify_all()

    def read(self) -> Mapping[str, Any]:
        """Return the latest document. It is never changed; a later document is another object."""
        return self._document

    def wait(self, seen: int, timeout_s: float) -> tuple[int, str, bool]:
        """Wait for a new document. Return its number, its text as JSON, and whether it is the last one.

        Args:
            seen: Number of the document that the reader has.
            timeout_s: Greatest time to wait. After it the call returns the document that the reader has.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._number != seen, timeout_s)
            return self._number, self._text, self._document["state"] == "stopped" and self.is_ended

    def _make(self) -> dict[str, Any]:
        now, sample, outages = time.monotonic(), self._sample, dict(self._outages())
        numbers = sample.numbers
        done, lag = numbers.get("messages_processed", 0), numbers.get("lag")
        if "messages_processed" in numbers:  # it counts since the checkpoint began: without it a rate would be too high
            self._rates.add(now, self._counters(numbers))
        return {
            "version": VERSION,
            "application": self._topology.name,
            "state": self._state,
            "time": _iso(time.time()),
            "started": _iso(self._started),
            "pid": os.getpid(),
            "checkpoint": str(self.checkpoint),
            "total": {name: numbers.get(name, 0) for name in MESSAGES},
            "run": {
                **{name: 0 for name in (*MESSAGES, *RUN_COUNTERS)},
                **numbers.get("run", {}),
                "batches": numbers.get("batches", 0),
            },
            "rate": self._rates.of("processed"),
            "lag": {
                "messages": lag,
                "seconds": None if lag is None else self._lag.add(now, done + lag, done),
                "waiting_for_sinks": numbers.get("waiting", 0),
            },
            "parts": [self._part(part, outages.get(part["path"], "")) for part in parts_of(self._topology)],
            "counters": {name: counter.text for name, counter in COUNTERS.items()},
            "edges": [self._edge(*edge) for edge in edges_of(self._topology)],
            "latency_ms": self.latencies.to_json(now),
            "gateways": list(self._gateways()),
            "sinks": list(self._sinks(sample.egress)),
            "states": list(self._states()),
            "batch": _batch(sample.batch),
            "workers": list(sample.workers),
            "processes": list(sample.processes),
            "findings": list(self._findings),
            "earlier": self._earlier,
        }

    def _sinks(self, egress: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        paths = {port: path for path, port in self._plan.ports.items()}
        names = ("name", "address", "state", "messages", "bytes", "pending_messages", "pending_bytes")
        for status in egress.get("sinks", ()):
            known = {name: status[name] for name in names if name in status}
            yield {"path": paths.get(status["port"], ""), **known}

    def _counters(self, numbers: Mapping[str, Any]) -> dict[str, int]:
        counters = {"processed": numbers.get("messages_processed", 0)}
        for path, count in self._steps.items():
            counters[f"in {path}"], counters[f"out {path}"] = count["messages_in"], count["messages_out"]
        return counters

    def _outages(self) -> Iterator[tuple[str, str]]:
        """Yield the path of each source that can give no messages now, with the reason."""
        paths = {port: path for path, port in self._plan.ports.items()}
        yield from ((path, outage.message) for path, outage in self._sample.outages.items())
        for status in self._sample.gateways:
            for source in status.get("kafka", ()):
                if source["outage"]:
                    yield paths[source["port"]], source["outage"]["message"]
            for source in status.get("connectors", ()):
                if not source["connected"]:
                    yield paths[source["port"]], f'source "{source["name"]}": no connector is connected now'

    def _part(self, part: dict[str, Any], outage: str) -> dict[str, Any]:
        path = part["path"]
        count = self._steps.get(path, Counter())
        return {
            **part,
            "outage": outage,
            **{name: count[name] for name in (*MESSAGES, *COUNTERS)},
            "rate_in": self._rates.of(f"in {path}"),
            "rate_out": self._rates.of(f"out {path}"),
        }

    def _edge(self, source: str, target: str, shuffles: bool) -> dict[str, Any]:
        # Messages that a step emits to a named output are not counted in the step's own `messages_out`.
        if target in self._outputs:
            messages, rate = self._steps.get(target, Counter())["messages_in"], self._rates.of(f"in {target}")
        else:
            messages, rate = self._steps.get(source, Counter())["messages_out"], self._rates.of(f"out {source}")
        return {"from": source, "to": target, "shuffles": shuffles, "messages": messages, "rate": rate}

    def _gateways(self) -> Iterator[dict[str, Any]]:
        processed = dict(enumerate(self._sample.processed))
        for number, status in enumerate(self._sample.gateways):
            yield _gateway(status, max(processed.get(number, -1), self._processed_bytes))

    def _states(self) -> Iterator[dict[str, Any]]:
        keys, size, seen = Counter[str](), Counter[str](), Counter[str]()
        for (name, _), (count, log) in self._stores.items():
            keys[name] += count
            size[name] += log
            seen[name] += 1
        for stage in self._plan.stages:
            if not stage.has_state:
                continue
            yield {
                "stage": stage.id,
                "names": list(dict.fromkeys(node.state for node in stage.entries if node.state)),
                "keys": keys[stage.id],
                "bytes": size[stage.id],
                "buckets": stage.bucket_count,
                "buckets_seen": seen[stage.id],
            }


def _gateway(status: Mapping[str, Any], processed: int) -> dict[str, Any]:
    backlog, end = status.get("backlog_bytes", 0), status.get("end", 0)
    return {
        "state": status.get("state", "unknown"),
        "sources": status.get("sources", []),
        "connections": status.get("connections", 0),
        "messages": status.get("messages", 0),
        "journal_bytes": end,
        # The driver reports progress to the gateway when the next micro-batch begins; in real-time mode, each minute.
        "lag_bytes": min(backlog, max(0, end - processed)),
        "reads": status.get("reads", True),
    }


def _refused_of(egress: Mapping[str, Any]) -> Counter[int]:
    return Counter({sink["port"]: int(sink.get("refused", 0)) for sink in egress.get("sinks", ())})


def _batch(report: Mapping[str, Any]) -> dict[str, Any]:
    if not report:
        return {}
    durations = report.get("durationMs") or {}
    return {
        "number": report.get("batchId", 0),
        "time": report.get("timestamp", ""),
        "phases_ms": {name: durations[name] for name in PHASES if name in durations},
        "state_memory_bytes": sum(each.get("memoryUsedBytes", 0) for each in report.get("stateOperators", ())),
    }


def _iso(seconds: float) -> str:
    time = datetime.fromtimestamp(seconds, timezone.utc)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parts_of(topology: Topology) -> Iterator[dict[str, Any]]:
    """Yield the sources, steps and sinks of an application as JSON, each after the parts from which it reads.

    `column`, where the page draws it, is the length of the longest path from a source.
    """
    columns: dict[str, int] = {}
    pipelines: dict[str, str] = {}
    for pipeline in topology.pipelines:
        parts: tuple[Part, ...] = (*pipeline.sources, *pipeline.steps, *pipeline.sinks)
        pipelines |= dict.fromkeys((part.path for part in parts), pipeline.name)
    for part in topology.parts():
        columns[part.path] = max((columns.get(path, 0) + 1 for path in inputs_of(part)), default=0)
        is_step = isinstance(part, Step)
        yield {
            "path": part.path,
            "name": part.name,
            "pipeline": pipelines[part.path],
            "kind": part.kind,
            "role": "source" if isinstance(part, Source) else "step" if is_step else "sink",
            "place": "" if isinstance(part, Step) else part.place,
            "worker": part.worker,
            "state": part.state.name if isinstance(part, Step) and part.state else "",
            "column": columns[part.path],
        }
