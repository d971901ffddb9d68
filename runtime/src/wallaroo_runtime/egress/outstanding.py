"""Messages whose output sinks have not taken yet: how long they take from the gateway on, and from the outbox on."""

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping

from wallaroo_runtime.lowering.histogram import Histogram

MOST_GROUPS = 10_000
COARSE_MS = 100  # of the arrivals of what joins another group


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class _Group:
    """Messages that end together.

    Attributes:
        arrived: Messages by the time of their arrival, in milliseconds since 1970.
        published_ms: When their output was in the outbox.
        sinks: How many sinks have not taken it.
    """

    __slots__ = ("arrived", "published_ms", "sinks")

    def __init__(self, arrived: Mapping[int, int], published_ms: int, sinks: int) -> None:
        self.arrived, self.published_ms, self.sinks = dict(arrived), published_ms, sinks

    def join(self, arrived: Mapping[int, int]) -> None:
        """Take messages that end with these: their arrivals become earlier by less than `COARSE_MS`."""
        for time_ms, count in arrived.items():
            coarse = time_ms - time_ms % COARSE_MS
            self.arrived[coarse] = self.arrived.get(coarse, 0) + count


class Outstanding:
    """Latencies of the messages of running micro-batches; a message ends when all sinks have taken its output.

    Any thread may call it. While more than 10,000 groups are outstanding, as when a receiver is away, further ones join
    the latest.

    Args:
        clock: Returns milliseconds since 1970.

    Example:
        >>> outstanding = Outstanding(lambda: 1005)
        >>> outstanding.publish({7: 3}, {1000: 2}, 1004)
        >>> outstanding.take(7, 2)
        >>> outstanding.to_json()
        {'deliver': {}, 'end_to_end': {}}
        >>> outstanding.take(7, 3)
        >>> outstanding.to_json()
        {'deliver': {1: 2}, 'end_to_end': {5: 2}}
    """

    def __init__(self, clock: Callable[[], int] = now_ms) -> None:
        self._lock, self._clock = threading.Lock(), clock
        self._waiting: dict[int, deque[tuple[int, _Group]]] = defaultdict(deque)  # by port, with where the group ends
        self._taken: Counter[int] = Counter()
        self._groups, self._last = 0, _Group({}, 0, 0)
        self._end_to_end, self._deliver = Histogram(), Histogram()

    def publish(self, ends: Mapping[int, int], arrived: Mapping[int, int], published_ms: int) -> None:
        """Take messages whose output is in the outbox.

        Args:
            ends: By port, how many messages the outbox has with that output.
            arrived: Messages by the time of their arrival, in milliseconds since 1970.
            published_ms: When the output came into the outbox.
        """
        with self._lock:
            open_ends = {port: end for port, end in ends.items() if end > self._taken[port]}
            if open_ends and self._groups >= MOST_GROUPS and self._ends_last(open_ends):
                self._last.join(arrived)
                for port, end in open_ends.items():
                    self._waiting[port][-1] = end, self._last
                return
            group = _Group(arrived, published_ms, len(open_ends))
            if not open_ends:
                self._end(group, has_sinks=bool(ends))
                return
            for port, end in open_ends.items():
                self._waiting[port].append((end, group))
            self._groups, self._last = self._groups + 1, group

    def _ends_last(self, ends: Mapping[int, int]) -> bool:
        """Say whether the latest group waits for just these sinks."""
        return self._last.sinks == len(ends) and all(
            waiting and waiting[-1][1] is self._last for waiting in map(self._waiting.__getitem__, ends)
        )

    def take(self, port: int, messages: int) -> None:
        """Take note that a sink has so many messages."""
        with self._lock:
            self._taken[port] = messages
            waiting = self._waiting[port]
            while waiting and waiting[0][0] <= messages:
                _, group = waiting.popleft()
                group.sinks -= 1
                if not group.sinks:
                    self._groups -= 1
                    self._end(group)

    def _end(self, group: _Group, *, has_sinks: bool = True) -> None:
        now = self._clock()
        for time_ms, count in group.arrived.items():
            self._end_to_end.add(now - time_ms, count)
        if has_sinks and group.arrived:
            self._deliver.add(now - group.published_ms, sum(group.arrived.values()))

    def to_json(self) -> dict[str, dict[int, int]]:
        """Return how many messages took how many milliseconds since the process began, by stage."""
        with self._lock:
            return {"deliver": self._deliver.to_counts(), "end_to_end": self._end_to_end.to_counts()}
