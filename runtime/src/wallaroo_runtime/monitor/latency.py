"""Counts latencies: for the whole run, and for its last five minutes."""

from collections import deque
from collections.abc import Mapping

from wallaroo_runtime.service.histogram import Histogram

RECENT_S = 300.0
SLICE_S = 30.0


class Latency:
    """Two histograms of latencies: of the whole run, and of the last five minutes."""

    def __init__(self) -> None:
        self.total = Histogram()
        self._slices: deque[tuple[float, Histogram]] = deque()

    def add(self, values_ms: Mapping[int, int], now: float) -> None:
        """Add values to both histograms.

        Args:
            values_ms: The number of occurrences of each value in milliseconds.
            now: Seconds of a clock that never goes back.
        """
        if not self._slices or now - self._slices[-1][0] >= SLICE_S:
            self._slices.append((now, Histogram()))
        for value, count in values_ms.items():
            self.total.add(value, count)
            self._slices[-1][1].add(value, count)

    def to_json(self, now: float) -> dict[str, dict[str, int]]:
        """Return count, percentiles and maximum of both histograms."""
        while self._slices and now - self._slices[0][0] > RECENT_S:
            self._slices.popleft()
        recent = Histogram()
        for _, histogram in self._slices:
            recent.merge(histogram)
        return {"five_minutes": recent.to_json(), "run": self.total.to_json()}
