"""Shows a status line: the last line of a terminal, which is replaced in place. Other output is printed above it."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

ERASE = "\r\x1b[2K"
COLUMNS = 80  # if a terminal does not report its width
LEFT = 3  # columns left free: a terminal writes `^C` at the end of the line, which must not begin another line
TICK_S = 1.0


class StatusLine:
    """The last line of stderr, which must be a terminal. Its text is replaced in place.

    Example:
        >>> line = StatusLine()
        >>> with line.above():  # nothing to hide yet
        ...     print("a message")
        a message
    """

    def __init__(self) -> None:
        self._lock, self._text, self._since = threading.RLock(), "", 0.0
        self._terminal, self._is_drawn = sys.stderr, False
        self._ticker: threading.Thread | None = None

    def show(self, text: str, *, is_timed: bool = False) -> None:
        """Replace the text of the status line.

        Args:
            text: The new text, cut at the width of the terminal; empty removes the line.
            is_timed: Whether the line also shows how many seconds have passed since this call, and updates them.
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
        """Hide the status line in the block, while other lines are printed."""
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
        if self._is_drawn:
            print(ERASE, end="", file=self._terminal, flush=True)
        self._is_drawn = False

    def _draw(self) -> None:
        if not self._text:
            return
        seconds = int(time.monotonic() - self._since) if self._since else 0
        text = f"{self._text}  {seconds} s" if seconds else self._text
        print(f"{ERASE}{text[: terminal_width(self._terminal) - LEFT]}", end="", file=self._terminal, flush=True)
        self._is_drawn = True


def terminal_width(stream: TextIO) -> int:
    """Return the number of columns of a stream's terminal."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS
    except OSError:
        return COLUMNS
