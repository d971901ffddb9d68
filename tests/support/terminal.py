"""A terminal of a test, and what it shows."""

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminal(columns: int) -> Iterator[int]:
    """Let stdout and stderr be a terminal of a width; gives the end where a person looks."""
    seen, own = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    before = sys.stdout, sys.stderr
    try:
        with os.fdopen(own, "w", encoding="utf-8") as stream:
            sys.stdout = sys.stderr = stream
            yield seen
    finally:
        sys.stdout, sys.stderr = before
        os.close(seen)


def looked_at(seen: int) -> list[str]:
    """Return the lines that stand on the terminal, the last one without its end."""
    sys.stdout.flush()
    os.set_blocking(seen, False)
    data = b""
    while True:
        try:
            data += os.read(seen, 65536)
        except BlockingIOError:
            break
    lines, text = [""], data.decode()
    while text:
        if text.startswith("\r\n"):
            lines.append("")
            text = text[2:]
        elif text.startswith("\r\x1b[2K"):
            lines[-1] = ""
            text = text[5:]
        else:
            lines[-1] += text[0]
            text = text[1:]
    return lines
