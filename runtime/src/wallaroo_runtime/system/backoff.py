"""Computes pauses between tries."""

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Pauses that double from the first to the last.

    Attributes:
        first: Seconds of the first pause.
        last: Seconds of the longest pause.
        count: Number of pauses since the last success; set it to 0 to begin again.

    Example:
        >>> backoff = Backoff(0.5, 3.0)
        >>> [backoff.next() for _ in range(4)]
        [0.5, 1.0, 2.0, 3.0]
    """

    first: float
    last: float
    count: int = 0

    def next(self) -> float:
        """Return the next pause in seconds."""
        self.count += 1
        return self.after(self.count)

    def after(self, failures: int) -> float:
        """Return the pause after a number of failures in a row; 0 after no failure."""
        return min(self.last, self.first * 2.0 ** min(failures - 1, 60)) if failures else 0.0
