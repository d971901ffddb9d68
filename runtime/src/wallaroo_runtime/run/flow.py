"""Watches gateways, query, egress and workers of a run, for the driver: their failures, findings and numbers."""

import contextlib
import shlex
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind, kind_of
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan.counter import RUN_COUNTERS
from wallaroo_runtime.run.end_condition import Activity
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.run.snapshot import Snapshot
from wallaroo_runtime.run.topic_watch import TopicWatch
from wallaroo_runtime.run.worker_output import WorkerOutput
from wallaroo_runtime.storage.progress import Progress
from wallaroo_runtime.worker import control
from wallaroo_runtime.worker.ending import Ending

if TYPE_CHECKING:
    from wallaroo_runtime.run.mode import Query

RATE_WINDOW_S = 5.0
ASK_S, LOOK_S = 0.5, 5.0  # for the state of workers


class Flow:
    """Watches the gateways, the query, the workers and the egress of a run.

    Args:
        note: Called with a text for the user, e.g. that a process was started again.
        letters: Argument of `wallaroo dead-letters`, for messages.
        output: Output of the workers on this machine.
        topics: Notices outages of brokers, and topics that were created again.
    """

    def __init__(
        self,
        peers: Peers,
        query: "Query",
        note: Callable[[str], None],
        letters: str,
        output: WorkerOutput,
        topics: TopicWatch,
    ) -> None:
        self._output = output
        self._peers, self._query, self._letters = peers, query, shlex.quote(letters)
        self._note, self._topics = note, topics
        self._ended: set[str] = set()
        self._gone: set[str] = set()
        self._away: set[int] = set()  # ports of sinks that cannot be reached
        self._all = [*peers.gateways, peers.egress]
        self._released = [-1 for _ in peers.gateways]  # the last committed offset that each gateway got
        self._told: list[list[Any] | None] = [None for _ in self._all]
        self._idle = IdleEndings()
        self._samples: deque[tuple[float, int]] = deque()

    def check(self) -> None:
        """Check query, gateways and egress once: raise the error that ended one, or start a gateway or egress again."""
        error = self._query.exception()
        if error is not None:
            raise error
        self._topics.check()
        self._tell_workers(self._progress().endings)
        self._tell_sinks()
        for peer in self._all:
            peer.check(self._note)
        for status in (gateway.status() for gateway in self._peers.gateways):
            self._tell_sources(status.get("generators", ()))
            if _waits(status):
                self._query.await_commit()

    def _progress(self) -> Progress:
        """Return the query's progress, and let gateways release the processed input."""
        progress = self._query.progress()
        for number, (gateway, offset) in enumerate(zip(self._peers.gateways, progress.offsets, strict=False)):
            status = gateway.status()
            # A waiting gateway gets the commit again, because it may have lost the commit in a crash of its machine.
            if (_waits(status) or offset != self._released[number]) and gateway.commit(offset):
                self._released[number] = offset
        return progress

    def _tell_workers(self, endings: Mapping[str, str]) -> None:
        """Report each worker process that ended by itself, once."""
        for process in endings.keys() - self._gone:
            self._gone.add(process)
            self._note(endings[process])
        for text in self._idle.look(self._query.targets, self._gone):
            self._note(text)

    def _tell_sinks(self) -> None:
        """Report sinks that are reached again after an outage."""
        for sink in self._peers.egress.status().get("sinks", ()):
            port = sink["port"]
            if sink["state"] == "unreachable":
                self._away.add(port)
            elif sink["state"] == "connected" and port in self._away:
                self._away.discard(port)
                self._note(f'sink "{sink["name"]}" is reached again')

    def _tell_sources(self, generators: Sequence[Mapping[str, Any]]) -> None:
        for generator in generators:
            name = generator["name"]
            if generator["ended"] and name not in self._ended:
                self._ended.add(name)
                self._note(f'source "{name}" has come to its end')

    def new_findings(self) -> Iterator[Diagnostic]:
        """Yield the findings of query, topics, gateway and egress since the last call."""
        yield from self._query.new_findings()
        yield from self._topics.new_findings()
        for notable in self._query.letters.news():
            yield notable.finding(f"wallaroo dead-letters show {self._letters}")
        for number, peer in enumerate(self._all):
            if peer.failure() is not None:
                continue  # this failure ends the run, and the run reports it
            status, known = peer.status(), self._told[number]
            self._told[number] = reported = status.get("diagnostics", [])
            # An earlier driver has reported the old findings, but lasting outages are reported again.
            new = lasting(status) if known is None else since(known, reported)
            findings = map(Diagnostic.from_json, new)
            yield from (finding for finding in findings if finding.kind is not Kind.AT_END)

    def failure(self, last: Snapshot) -> RunError | None:
        """Return an error if the egress cannot go on, or if all messages failed and none was emitted; else None.

        Args:
            last: The run's numbers at its end.
        """
        if (error := self._peers.egress.failure()) is not None:
            return error
        failed, arrived = last.run["dead_letters"], last.run["messages_in"]
        if failed < max(arrived, 1) or self._query.progress().messages_out or last.run["messages_out"]:
            return None
        return RunError.of("R741", count=f"{arrived:,}", command=f"wallaroo dead-letters ls --group {self._letters}")

    def show_output(self, show: Callable[[str, str], None], *, whole: bool = True) -> None:
        """Show the workers' output since the last call; `whole` leaves an incomplete line for the next call."""
        for worker, line in self._output.lines(whole=whole):
            show(worker, line)

    def activity(self) -> Activity:
        """Return the numbers that show whether the run is idle."""
        progress = self._query.progress()
        is_held = self._query.is_held
        done = self._is_delivered() and (
            is_held or not (self._query.is_busy or self._is_awaited() or self._has_unread())
        )
        # Counts of messages are compared, not offsets, since ticks are no activity.
        return Activity(self._peers.received(), progress.messages_in, done, is_held, progress.records.now.received)

    def is_complete(self) -> bool:
        """Return whether all input that existed at the start is processed and its output delivered (`--available-now`).

        Raises:
            RunError: The error that ended the query.
        """
        if self._query.is_busy:
            return False
        if (error := self._query.exception()) is not None:
            raise error
        if self._peers.topic_ids():  # if gateways read no topics, the query ends by itself after all input
            progress = self._query.progress()
            if self._has_unread() or self._is_awaited() or progress.messages_in < self._peers.received():
                return False
        return self._peers.undelivered() == 0

    def _is_awaited(self) -> bool:
        """Return whether a gateway waits for a commit: for a generator, or for a visit that is not processed yet."""
        return any(gateway.status().get("waits") for gateway in self._peers.gateways)

    def _has_unread(self) -> bool:
        """Return whether a gateway must still read a topic up to the offset at which the topic ended at the start."""
        at_end = sum(
            bool(topic["at_end"]) for gateway in self._peers.gateways for topic in gateway.status().get("kafka", ())
        )
        return at_end < len(self._peers.topic_ids())

    def _is_delivered(self) -> bool:
        sinks = self._peers.egress.status().get("sinks", [])
        return all(sink["pending_bytes"] == 0 or sink["state"] == "unreachable" for sink in sinks)

    def snapshot(self, state: str) -> Snapshot:
        """Return the current numbers of the run."""
        progress = self._progress()
        records = progress.records.now
        processed = progress.messages_in + records.received
        # A gateway reports less often than the query, so it may count fewer messages than are processed.
        received = max(self._peers.received() + records.received, processed)
        delivered = self._peers.delivered() + records.sent
        letters = progress.dead_letters + self._peers.refused()
        letters_before = progress.dead_letters_before + self._peers.refused_before
        now = time.monotonic()
        self._samples.append((now, processed))
        while now - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()
        (first, before), span = self._samples[0], now - self._samples[0][0]
        rate = (processed - before) / span if span > 0 and first < now else 0.0
        return Snapshot(
            state=state,
            messages_in=received,
            messages_processed=processed,
            messages_out=delivered,
            dead_letters=letters,
            batches=progress.batches,
            rate=rate,
            lag=None if progress.unread is None else max(0, received - processed) + progress.unread,
            waiting=sum(sink["pending_messages"] for sink in self._peers.egress.status().get("sinks", ())),
            bytes_by_file=progress.bytes_by_file,
            bytes_by_grpc=progress.bytes_by_grpc,
            run={
                "messages_in": received - progress.records.before.received - self._peers.received_before,
                "messages_out": delivered - progress.records.before.sent - self._peers.delivered_before,
                "dead_letters": letters - letters_before,
                **{name: progress.counts.get(name, 0) for name in RUN_COUNTERS},
            },
        )


def _waits(gateway: Mapping[str, Any]) -> bool:
    """Say whether a gateway with this status waits for a commit before it continues to read."""
    return bool(gateway.get("waits")) or not gateway.get("reads", True)


def since(known: Sequence[Any], latest: Sequence[Any]) -> Sequence[Any]:
    """Return the entries that were appended to a list since `known`, even if its first entries were removed.

    Args:
        known: The former entries.
        latest: The current entries.

    Example:
        >>> since("abc", "bcbc")
        'bc'
    """
    dropped = next(number for number in range(len(known) + 1) if latest[: len(known) - number] == known[number:])
    return latest[len(known) - dropped :]


def lasting(status: Mapping[str, Any]) -> list[Any]:
    """Return the findings of a status, without outages that are over. An outage that lasts is returned once.

    Args:
        status: Status of a gateway or an egress.

    Example:
        >>> finding = {"code": "R613", "message": 'sink "out" cannot be reached at h:1'}
        >>> lasting({"sinks": [{"name": "out", "outage": None}], "diagnostics": [finding]})
        []
    """
    others = [each for each in status.get("diagnostics", ()) if kind_of(each["code"]) is not Kind.OUTAGE]
    parts = (*status.get("sinks", ()), *status.get("kafka", ()))
    return others + [part["outage"] for part in parts if part["outage"]]


class IdleEndings:
    """Finds worker processes that have ended while no task called them: compares the processes of two checks."""

    def __init__(self) -> None:
        self._looked_at = 0.0
        self._seen: dict[str, tuple[int, int]] = {}  # by name of the worker: generation and id of its process
        self._found: dict[int, str] = {}  # ended processes; the next `look` reports them unless tasks have done so

    def look(self, targets: Mapping[str, str], reported: Iterable[str]) -> Iterator[str]:
        """Yield a text for each worker process that has ended and that no task has reported.

        Args:
            targets: gRPC targets of the workers, by name.
            reported: Places of processes that tasks have reported.
        """
        now = time.monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        known = {place.rpartition(" ")[2] for place in reported}
        yield from (text for process, text in self._found.items() if str(process) not in known)
        self._found = {}
        for name, target in targets.items():
            if (directory := control.directory_of(target)) is not None:
                with contextlib.suppress(OSError, KeyError, ValueError):  # other code reports a lost supervisor
                    self._ask(name, directory)

    def _ask(self, name: str, directory: Path) -> None:
        state = control.ask(directory, {"op": "status"}, ASK_S)
        generation, process = int(state["generation"]), int(state["pid"])
        before, self._seen[name] = self._seen.get(name), (generation, process)
        if before is None or before[0] >= generation:
            return
        reply = control.ask(directory, {"op": "ending", "generation": before[0]}, ASK_S)
        ending = Ending.from_json(reply["ending"]) if reply.get("ending") else None
        how = ending.text if ending else "it has ended"
        self._found[before[1]] = f'worker "{name}", process {before[1]}: {how}; process {process} follows'
