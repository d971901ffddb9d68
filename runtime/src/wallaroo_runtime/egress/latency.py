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
        """Add messages to this group, with times that are rounded down to multiples of `coarse_ms`."""
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
    """Measures until sinks have a message's output: from the message's arrival, and from the output's in the outbox.

    Any thread may call it. If 10,000 groups wait for a sink, e.g. because its receiver is away, further messages join
    the latest of these groups and end with it.

    Args:
        clock: Returns milliseconds since 1970.

    Example:
        >>> latencies = LatencyMeter(lambda: 1005)
        >>> latencies.publish({7: 3}, {1000: 2}, 1004)
        >>> latencies.take(7, 2)
        >>> latencies.to_json()
        {'deliver': {}, 'end_to_end': {}}
        >>> latencies.take(7, 3)
        >>> latencies.to_json()
        {'deliver': {1: 2}, 'end_to_end': {5: 2}}
    """

    def __init__(self, clock: Callable[[], int] = now_ms) -> None:
        self._lock, self._clock = threading.Lock(), clock
        self._waiting: dict[int, deque[tuple[int, _Group]]] = defaultdict(deque)  # by port, each with its last message
        self._taken: Counter[int] = Counter()
        self._end_to_end, self._deliver = Histogram(), Histogram()

    def publish(self, ends: Mapping[int, int], arrived: Mapping[int, int], published_ms: int) -> None:
        """Begin to measure for messages whose output has just come into the outbox.

        Args:
            ends: Number of messages in the outbox up to the end of the new output, by port.
            arrived: Number of messages by the time of their arrival, in milliseconds since 1970.
            published_ms: Time at which the output came into the outbox.
        """
        with self._lock:
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

    def take(self, port: int, messages: int) -> None:
        """Note the number of messages that a port's sink has delivered, and end the latencies of finished groups."""
        with self._lock:
            self._taken[port] = messages
            waiting = self._waiting[port]
            while waiting and waiting[0][0] <= messages:
                _, group = waiting.popleft()
                group.sinks -= 1
                if not group.sinks:
                    self._end(group)

    def _end(self, group: _Group, *, has_sinks: bool = True) -> None:
        now = self._clock()
        for time_ms, count in group.arrived.items():
            self._end_to_end.add(now - time_ms, count)
        for time_ms, count in group.published.items() if has_sinks and group.arrived else ():
            self._deliver.add(now - time_ms, count)

    def to_json(self) -> dict[str, dict[int, int]]:
        """Return the number of messages by latency in ms, since the process began.

        `end_to_end` begins with the arrival of a message, `deliver` with its output in the outbox.
        """
        with self._lock:
            return {"deliver": self._deliver.to_counts(), "end_to_end": self._end_to_end.to_counts()}
