"""Computes rates of counters: over the last five seconds, and over five minutes."""

from collections import deque
from collections.abc import Mapping

NOW_S, LONG_S = 5.0, 300.0
SAMPLE_S = 0.9


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
        """Return the rates of a counter per second. A counter that is missing in a sample counts as 0."""
        return {"now": self._over(name, NOW_S), "five_minutes": self._over(name, LONG_S)}

    def _over(self, name: str, span_s: float) -> float:
        if not self._samples:
            return 0.0
        last, counters = self._samples[-1]
        first, before = next(sample for sample in self._samples if last - sample[0] <= span_s)
        if last <= first:
            return 0.0
        return round((counters.get(name, 0) - before.get(name, 0)) / (last - first), 2)
