"""The measurements: how much in a second, how late, how soon after a start, and what a kill of everything does."""

import contextlib
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from bench.peers import topics
from bench.peers.contender import CONTENDERS, HOME, Contender
from bench.peers.process import Processes
from bench.peers.verdict import compare
from bench.peers.workload import KEYED, RECORDS, WORKLOADS, Record, expected, ordered, plain
from support.kafka import Broker
from wallaroo_runtime.errors import RunError

Figures = dict[str, Any]

LOGS = HOME / "logs"
START_S = 300.0  # to the first result
LIMITS_S = {"whole": 60.0, "short": 40.0, "tiny": 90.0}  # from the first result to the last one
LOOK_S, SETTLE_S, AFTER_S = 0.05, 1.5, 6.0
SKIPPED = 10  # the first of so many parts of the results is for warming
RATE, WARM_S, LATENCY_KEYS = 1000, 4, 1000
FIRST_S, TAKE_S, LATE_S = 0.2, 0.1, 15.0
LINE_RATE, FIRST_LINES, BLOCK_LINES = 500, 50, 10
MARGIN_S = 0.05  # after a kill: what the broker took before it


class FailedError(Exception):
    """A contender gave no result."""


class Bout:
    """A contender at one workload: its processes and its topics."""

    def __init__(self, broker: Broker, name: str, work: str, size: str, runs: Path) -> None:
        self.broker, self.work, self.size = broker, WORKLOADS[work], size
        self.amount = self.work.amounts[size]
        self.contender: Contender = CONTENDERS[name]
        self.processes = Processes(runs, LOGS / f"{name}-{work}.log")
        self.output = f"out-{self.processes.name}"
        self.input = f"in-{self.processes.name}"
        topics.create(broker, self.output)
        self.reader = topics.Reader(broker, self.output)

    def start(self) -> None:
        """Start the contender, the first time or again."""
        variables = {
            "BROKER": self.broker.address,
            "INPUT": self.input,
            "OUTPUT": self.output,
            "WORK": self.work.kind,
            "RUN": self.processes.name,
            "STATE": str(self.processes.directory / "state"),
            "COMMIT_MS": str(self.work.commit_ms),
            "BATCH": "1000" if self.size == "tiny" else str(self.work.batch),
            "MODE": "microbatch",
            "EXACTLY_ONCE": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
            **self.contender.environment,
        }
        command = self.contender.command(HOME / self.contender.home, variables)
        self.processes.start([str(each) for each in command], variables)

    def wait_first(self) -> float:
        """Wait for the first result; returns the seconds since the start."""
        deadline = time.monotonic() + START_S
        while not self.reader.end():
            if not self.processes.is_alive or time.monotonic() > deadline:
                seconds, said = time.time() - self.processes.began, self.processes.last_line() or "nothing"
                reason = f"no result in {seconds:.0f} s; it said last: {said}"
                raise FailedError(reason)
            time.sleep(LOOK_S)
        return time.time() - self.processes.began

    def wait_all(self, number: int, limit_s: float) -> bool:
        """Wait until so many results are committed and no more come; returns whether that was within the limit.

        Markers of transactions count as offsets, so the end alone does not say that all is there.
        """
        deadline, last, changed = time.monotonic() + limit_s, -1, 0.0
        while time.monotonic() < deadline and self.processes.is_alive:
            if (end := self.reader.end()) != last:
                last, changed = end, time.monotonic()
            elif end >= number and time.monotonic() - changed > SETTLE_S and self.reader.read() >= number:
                return True
            time.sleep(LOOK_S)
        return self.reader.read() >= number

    def figures(self, reference: Mapping[Record, int], *, is_whole: bool) -> Figures:
        """Return what all measurements have."""
        found = (plain(self.work.kind, each.key, each.value) for each in self.reader.found)
        verdict = compare(reference, found)
        return {
            "results": len(self.reader.found),
            "is_whole": is_whole,
            "memory_mb": round(self.processes.peak_mb),
            "verdict": verdict._asdict(),
            "text": verdict.text(is_whole=is_whole),
        }

    def close(self) -> None:
        """End the contender, and remove its topics."""
        self.reader.close()
        self.processes.close()
        with contextlib.suppress(RunError, KafkaException):  # a busy broker keeps them until it ends
            topics.remove(self.broker, self.processes.name)


def throughput(bout: Bout) -> Figures:
    """Measure results per second, the first tenth left out, of a topic that is full at the start."""
    reference = expected(bout.work.kind, bout.amount)
    bout.input = topics.filled(bout.broker, bout.work.kind, bout.amount)
    bout.start()
    bout.wait_first()
    is_whole = bout.wait_all(len(reference), LIMITS_S[bout.size])
    bout.processes.kill()
    times = sorted(each.time_s for each in bout.reader.found)
    begin = len(times) // SKIPPED
    seconds = times[-1] - times[begin] if times else 0.0
    rate = {"per_s": (len(times) - 1 - begin) / seconds} if seconds else {}
    return bout.figures(reference, is_whole=is_whole) | rate


def first(bout: Bout) -> Figures:
    """Measure the time from the command to the first result, with one record in the topic."""
    reference = expected(bout.work.kind, 1)
    bout.input = topics.filled(bout.broker, bout.work.kind, 1)
    bout.start()
    seconds = bout.wait_first()
    is_whole = bout.wait_all(len(reference), LIMITS_S[bout.size])
    return bout.figures(reference, is_whole=is_whole) | {"start_s": seconds}


def latency(bout: Bout) -> Figures:
    """Measure the time from the moment at which a message was to be sent to the moment at which its result is read."""
    topics.create(bout.broker, bout.input)
    client, drawn = topics.producer(bout.broker, **{"linger.ms": 0}), random.Random(15)
    sent: list[Record] = []

    def send(at_s: float) -> None:
        key = f"k{drawn.randrange(LATENCY_KEYS)}"
        sent.append(Record(key, f"{key} {int(1e9 * at_s)}"))
        client.produce(bout.input, sent[-1].value, sent[-1].key)

    bout.start()
    with _received(bout.reader) as arrivals:
        while not arrivals and bout.processes.is_alive and time.time() < bout.processes.began + START_S:
            send(time.time())
            client.poll(0)
            time.sleep(FIRST_S)
        bout.wait_first()
        begin, number = time.time() + 1, (WARM_S + bout.amount) * RATE
        for at_s in (begin + place / RATE for place in range(number)):
            time.sleep(max(0.0, at_s - time.time()))
            client.poll(0)
            send(at_s)
        client.flush(topics.FLUSH_S)
        deadline = time.monotonic() + LATE_S
        while len(bout.reader.found) < len(sent) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
    since = int(1e9 * (begin + WARM_S))
    delays = sorted((came - at) / 1e6 for at, came in arrivals if at >= since)
    figures = bout.figures(ordered(KEYED, sent), is_whole=True)
    if not delays:
        reason = f"no result in the time that counts; {figures['text']}"
        raise FailedError(reason)
    return figures | {f"p{share}_ms": delays[min(len(delays) - 1, len(delays) * share // 100)] for share in (50, 99)}


@contextlib.contextmanager
def _received(reader: topics.Reader) -> Iterator[list[tuple[int, int]]]:
    """Read in a thread of its own: when each message was to be sent, and when its result came, in ns."""
    arrivals: list[tuple[int, int]] = []
    is_over = threading.Event()

    def receive() -> None:
        reader.follow()
        while not is_over.is_set():
            for each in reader.take(TAKE_S):
                arrivals.append((int((each.value or b"0").rsplit(b" ", 1)[-1]), time.time_ns()))

    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    try:
        yield arrivals
    finally:
        is_over.set()
        thread.join()


def recovery(bout: Bout) -> Figures:
    """Kill everything in the middle of lines that come at a pace, and start it again at once."""
    topics.create(bout.broker, bout.input)
    client, records = topics.producer(bout.broker), [*RECORDS[bout.work.kind](bout.amount)]
    reference, killed_s = expected(bout.work.kind, bout.amount), 0.0
    topics.put(client, bout.input, records[:FIRST_LINES])
    bout.start()
    bout.wait_first()
    begin = time.monotonic()
    for place in range(FIRST_LINES, len(records), BLOCK_LINES):
        if place >= len(records) // 2 and not killed_s:
            bout.processes.kill()
            killed_s = time.time()
            bout.start()
        time.sleep(max(0.0, begin + (place - FIRST_LINES) / LINE_RATE - time.monotonic()))
        topics.put(client, bout.input, records[place : place + BLOCK_LINES])
    is_whole = bout.wait_all(len(reference), START_S)
    if is_whole:
        time.sleep(AFTER_S)  # what comes again, comes now
        bout.reader.read()
    later = [each.time_s for each in bout.reader.found if each.time_s > killed_s + MARGIN_S]
    figures = bout.figures(reference, is_whole=True) | {"is_alive": bout.processes.is_alive}
    return figures | ({"recovery_s": min(later) - killed_s} if later else {})


WAYS = {"w1": throughput, "w2": latency, "w3": throughput, "w4": throughput, "start": first, "w5": recovery}


def measured(broker: Broker, name: str, work: str, size: str, runs: Path) -> Figures:
    """Measure a contender at a workload, and end all that was started for it."""
    try:
        with contextlib.closing(Bout(broker, name, work, size, runs)) as bout:
            return WAYS[work](bout)
    except (FailedError, OSError, RunError, KafkaException, subprocess.SubprocessError) as error:
        return {"failed": " ".join(str(error).split())}
