"""Measures the lag of a run in seconds: how long messages wait to be processed."""

MAX_SAMPLES = 4096


class Lag:
    """Estimates how long unprocessed messages have waited, as if messages between two calls of `add` arrived together.

    Messages are processed approximately in the order of their arrival. For messages that an earlier run has left, the
    time counts from the first call of `add`.

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
