"""Counts durations in milliseconds, in buckets whose bounds are 3 % apart."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

STEP = 1.03
MOST_MS = 7 * 24 * 3600 * 1000
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}


def _bounds() -> list[int]:
    """Return the upper bounds of the buckets: first in steps of a millisecond, then in steps of 3 %."""
    bounds = [0]
    while bounds[-1] < MOST_MS:
        bounds.append(max(bounds[-1] + 1, int(bounds[-1] * STEP)))
    return bounds


BOUNDS = _bounds()


class Histogram:
    """Counts how often durations in milliseconds occur, from which it estimates percentiles.

    Attributes:
        count: Number of values that were added.
        sum_ms: Sum of the values.
        max_ms: The largest value.

    Example:
        >>> histogram = Histogram()
        >>> for value in range(1, 1001):
        ...     histogram.add(value)
        >>> histogram.quantile(0.5), histogram.quantile(0.999), histogram.max_ms
        (505, 1000, 1000)
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.count = self.sum_ms = self.max_ms = 0

    def add(self, value_ms: int, count: int = 1) -> None:
        """Count a value `count` times. A value below 0, e.g. after a clock was set back, counts as 0."""
        if count <= 0:  # a value with count 0 must not become the largest
            return
        value = min(max(value_ms, 0), MOST_MS)
        self._counts[bisect_left(BOUNDS, value)] += count
        self.count += count
        self.sum_ms += value * count
        self.max_ms = max(self.max_ms, value)

    def merge(self, other: "Histogram") -> None:
        """Add the counts of another histogram."""
        self._counts.update(other._counts)
        self.count += other.count
        self.sum_ms += other.sum_ms
        self.max_ms = max(self.max_ms, other.max_ms)

    def quantile(self, share: float) -> int:
        """Return the upper bound of the bucket of a percentile, e.g. of the median for share 0.5; 0 without values."""
        wanted, seen = share * self.count, 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= wanted:
                return min(BOUNDS[bucket], self.max_ms)
        return 0

    def to_counts(self) -> dict[int, int]:
        """Return the number of values in each bucket, by its upper bound."""
        return {BOUNDS[bucket]: count for bucket, count in sorted(self._counts.items())}

    def below(self, bounds_ms: Iterable[int]) -> list[int]:
        """Return, for each bound, the number of values up to the bound, as exactly as the buckets allow."""
        return [sum(count for bucket, count in self._counts.items() if BOUNDS[bucket] <= bound) for bound in bounds_ms]

    def to_json(self) -> dict[str, float | None]:
        """Return the number of values, and their mean, percentiles and maximum in ms; without values these are None."""
        found = {name: self.quantile(share) for name, share in QUANTILES.items()}
        mean = round(self.sum_ms / max(1, self.count), 1)
        shown = {"mean": mean, **found, "max": self.max_ms}
        return {"count": self.count, **(shown if self.count else dict.fromkeys(shown))}
