"""Reading from a terminal that may show nothing for a while."""

import os
import select
from collections.abc import Callable

PATIENCE_S = 5.0


def read_patiently(terminal: int, again: Callable[[], object] | None) -> bytes:
    """Read what is shown; Python's readline misses a signal that comes just before it waits, so a person repeats it."""
    while again and not select.select([terminal], [], [], PATIENCE_S)[0]:
        again()
    return os.read(terminal, 4096)
