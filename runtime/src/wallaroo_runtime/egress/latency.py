"""Measures latencies in real-time mode, which end when all sinks have delivered the output of a message."""

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping

from wallaroo_runtime.service.histogram import Histogram

MOST_GROUPS = 10_000
COARSE_MS = 100  # resolution of times in a group; coarser if the group waits for hours
MOST_TIMES = 4096  # limit for different times in one group


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class _Group:
    """Messages whose latencies end together, when all sinks have taken the output of these messages.

    Attributes:
        arrived: Number of messages by the time of their arrival, in milliseconds since 1970.
        published: Number of messages by the time at which their output was in the outbox.
        sinks: Number of sinks that have not taken the output.
        coarse_ms: Resolution of the times of messages that have joined the group.
    """

    __slots__ = ("arrived", "coarse_ms", "published", "sinks")

    def __init__(self, arrived: Mapping[int, int], published_ms: int, sinks: int) -> None:
        self.arrived, self.published = Counter(arrived), Counter({published_ms: sum(arrived.values())})
        self.sinks, self.coarse_ms = sinks, COARSE_MS

    def join(self, arrived: Mapping[int, int], published_ms: int) -> None:
        """Add messages to this group. Their times are rounded down to multiples of `coarse_ms`."""
        for time_ms, count in arrived.items():
            self.arrived[time_ms - time_ms % self.coarse_ms] += count
            self.published[published_ms - published_ms % self.coarse_ms] += count
        while max(len(self.arrived), len(self.published)) > MOST_TIMES:
            self.coarse_ms *= 2
            self.arrived = _coarse(self.arrived, self.coarse_ms)
            self.published = _coarse(self.published, self.coarse_ms)


def _coarse(counts: Mapping[int, int], step_ms: int) -> Counter[int]:
    steps = Counter[int]()
    for time_ms, count in counts.items():
        steps[time_ms - time_ms % step_ms] += count
    return steps


class LatencyMeter:
    """Measures the parts of latencies from the engine's output on, and the time from arrival until sinks have output.

    Any thread may call it. If 10,000 groups wait for a sink, e.g. because its receiver is away, further messages join
    the latest of these groups and end with it.

    Args:
        clock: Returns milliseconds since 1970.

    Example:
        >>> latencies = LatencyMeter(lambda: 1005)
        >>> latencies.publish({7: 3}, {1000: 2}, 1004, computed_ms=1002)
        >>> latencies.take(7, 2)
        >>> latencies.to_json()
        {'output': {2: 2}, 'deliver': {}, 'commit': {}, 'end_to_end': {}}
        >>> latencies.take(7, 3)
        >>> latencies.to_json()
        {'output': {2: 2}, 'deliver': {1: 2}, 'commit': {}, 'end_to_end': {5: 2}}
    """

    def __init__(self, clock: Callable[[], int] = now_ms) -> None:
        self._lock, self._clock = threading.Lock(), clock
        self._waiting: dict[int, deque[tuple[int, _Group]]] = defaultdict(deque)  # by port, each with its last message
        self._taken: Counter[int] = Counter()
        self._written: dict[int, int] = {}  # by port, when the commit began that `take` reports
        self._parts = {part: Histogram() for part in ("output", "deliver", "commit", "end_to_end")}

    def publish(
        self, ends: Mapping[int, int], arrived: Mapping[int, int], published_ms: int, computed_ms: int = 0
    ) -> None:
        """Start the clocks for messages whose output has just come into the outbox.

        Args:
            ends: Number of messages in the outbox up to the end of the new output, by port.
            arrived: Number of messages by the time of their arrival, in milliseconds since 1970.
            published_ms: Time at which the output came into the outbox.
            computed_ms: Time at which the engine had the output; 0 if that is not known.
        """
        with self._lock:
            if computed_ms:
                self._parts["output"].add(published_ms - computed_ms, sum(arrived.values()))
            open_ends = {port: end for port, end in ends.items() if end > self._taken[port]}
            if not open_ends:
                self._end(_Group(arrived, published_ms, 0), has_sinks=bool(ends))
                return
            slowest = max((self._waiting[port] for port in open_ends), key=len)
            if len(slowest) < MOST_GROUPS:
                group = _Group(arrived, published_ms, len(open_ends))
                for port, end in open_ends.items():
                    self._waiting[port].append((end, group))
                return
            latest = slowest[-1][1]
            latest.join(arrived, published_ms)
            for port, end in open_ends.items():
                waiting = self._waiting[port]
                if waiting and waiting[-1][1] is latest:
                    waiting[-1] = end, latest

    def write(self, port: int) -> None:
        """Note that a port's sink has written the messages of a transaction, and begins to commit it."""
        with self._lock:
            self._written[port] = self._clock()

    def take(self, port: int, messages: int) -> None:
        """Note the number of messages that a sink has delivered. End the latencies of groups that are now complete."""
        with self._lock:
            self._taken[port], written_ms = messages, self._written.pop(port, None)
            waiting = self._waiting[port]
            while waiting and waiting[0][0] <= messages:
                _, group = waiting.popleft()
                group.sinks -= 1
                if not group.sinks:
                    self._end(group, written_ms)

    def _end(self, group: _Group, written_ms: int | None = None, *, has_sinks: bool = True) -> None:
        now, count = self._clock(), group.arrived.total()
        for time_ms, messages in group.arrived.items():
            self._parts["end_to_end"].add(now - time_ms, messages)
        for time_ms, messages in group.published.items() if has_sinks and count else ():
            self._parts["deliver"].add((now if written_ms is None else written_ms) - time_ms, messages)
        if written_ms is not None:
            self._parts["commit"].add(now - written_ms, count)

    def to_json(self) -> dict[str, dict[int, int]]:
        """Return the number of messages by latency in ms for each part, since the process began."""
        with self._lock:
            return {part: histogram.to_counts() for part, histogram in self._parts.items()}
