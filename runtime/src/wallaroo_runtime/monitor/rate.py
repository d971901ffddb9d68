"""Computes rates of counters, over the last five seconds and over five minutes, and how long messages wait."""

from collections import deque
from collections.abc import Mapping

NOW_S, LONG_S = 5.0, 300.0
SAMPLE_S = 0.9
MAX_SAMPLES = 4096


class Rates:
    """Computes the rates of counters, from samples of the last five minutes.

    Example:
        >>> rates = Rates()
        >>> for second in range(11):
        ...     rates.add(second, {"in": second * 10 if second < 6 else 50})
        >>> rates.of("in")
        {'now': 0.0, 'five_minutes': 5.0}
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Mapping[str, int]]] = deque()

    def add(self, now: float, counters: Mapping[str, int]) -> None:
        """Record a sample of the counters. The caller must not change the mapping afterwards."""
        if len(self._samples) > 1 and now - self._samples[-2][0] < SAMPLE_S:
            self._samples.pop()
        self._samples.append((now, counters))
        while now - self._samples[0][0] > LONG_S:
            self._samples.popleft()

    def of(self, name: str) -> dict[str, float]:
        """Return the rates of a counter per second, now and over five minutes. A counter that a sample lacks is 0."""
        return {"now": self._over(name, NOW_S), "five_minutes": self._over(name, LONG_S)}

    def _over(self, name: str, span_s: float) -> float:
        if not self._samples:
            return 0.0
        last, counters = self._samples[-1]
        first, before = next(sample for sample in self._samples if last - sample[0] <= span_s)
        if last <= first:
            return 0.0
        return round((counters.get(name, 0) - before.get(name, 0)) / (last - first), 2)


class Lag:
    """Estimates how long the oldest unprocessed message has waited, from the counts of received and processed messages.

    Messages count as processed in the order of their arrival, and messages between two calls of `add` as arrived
    together. For messages that an earlier run has left, the time counts from the first call of `add`.

    Example:
        >>> lag = Lag()
        >>> [lag.add(*look) for look in ((0.0, 5, 0), (2.0, 9, 4), (3.0, 9, 5), (4.0, 9, 9))]
        [0.0, 2.0, 1.0, 0.0]
    """

    def __init__(self) -> None:
        self._samples: list[tuple[float, int]] = []

    def add(self, now: float, received: int, processed: int) -> float:
        """Record the present numbers. Return how many seconds the oldest message has waited; 0 if none waits."""
        if received > (self._samples[-1][1] if self._samples else processed):
            self._samples.append((now, received))
        self._samples = [sample for sample in self._samples if sample[1] > processed]
        if len(self._samples) > MAX_SAMPLES:  # after a long wait, keep only half of the samples
            self._samples = [*self._samples[:-1:2], self._samples[-1]]
        return round(now - self._samples[0][0], 1) if self._samples else 0.0
