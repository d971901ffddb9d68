"""The line of a terminal that is written again and again; everything else is printed above it."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

ERASE = "\r\x1b[2K"
COLUMNS = 80  # of a terminal that does not say it
TICK_S = 1.0


class StatusLine:
    """A line at the end of stderr, which is a terminal.

    Example:
        >>> line = StatusLine()
        >>> with line.above():  # nothing to hide yet
        ...     print("a message")
        a message
    """

    def __init__(self) -> None:
        self._lock, self._text, self._since = threading.RLock(), "", 0.0
        self._ticker: threading.Thread | None = None

    def show(self, text: str, *, is_timed: bool = False) -> None:
        """Replace the line.

        Args:
            text: What it says; empty: there is no line. It is cut at the width of the terminal.
            is_timed: Whether it also says how many seconds this has taken so far, and goes on to do so.
        """
        with self._lock:
            if not text:
                self._erase()
            self._text, self._since = text, time.monotonic() if is_timed else 0.0
            self._draw()
        if is_timed and self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, name="status-line", daemon=True)
            self._ticker.start()

    @contextmanager
    def above(self) -> Iterator[None]:
        """Take the line away for what is printed meanwhile."""
        with self._lock:
            self._erase()
            try:
                yield
            finally:
                self._draw()

    def _tick(self) -> None:
        while True:
            time.sleep(TICK_S)
            with self._lock:
                if self._since:
                    self._draw()

    def _erase(self) -> None:
        if self._text:
            print(ERASE, end="", file=sys.stderr, flush=True)

    def _draw(self) -> None:
        if not self._text:
            return
        seconds = int(time.monotonic() - self._since) if self._since else 0
        text = f"{self._text}  {seconds} s" if seconds else self._text
        print(f"{ERASE}{text[: width() - 1]}", end="", file=sys.stderr, flush=True)


def width() -> int:
    """Return the columns of the terminal that stderr is."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or COLUMNS
    except OSError:
        return COLUMNS
