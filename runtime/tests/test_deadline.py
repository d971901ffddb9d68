"""The deadline of a call: it counts from the last progress."""

import threading
import time
from collections.abc import Callable

from wallaroo_runtime.worker.deadline import Deadline

SECONDS = 0.4


def passed_after(look: Callable[[], tuple[object, bool]], limit: float = 10.0) -> float:
    """Return after how many seconds a deadline passes."""
    passed = threading.Event()
    deadline = Deadline(SECONDS, passed.set, look)
    begin = time.monotonic()
    deadline.arm()
    assert passed.wait(limit), f"waited {limit} s for the deadline"
    deadline.close()
    assert deadline.has_passed
    return time.monotonic() - begin


def test_without_progress_it_passes_in_time() -> None:
    assert SECONDS <= passed_after(lambda: (1, False)) < 2 * SECONDS


def test_progress_puts_it_off_as_long_as_there_is_any() -> None:
    begin = time.monotonic()

    def look() -> tuple[object, bool]:
        return min(time.monotonic() - begin, 4 * SECONDS), False

    assert passed_after(look) >= 5 * SECONDS


def test_behind_another_call_it_waits_twice_as_long() -> None:
    assert passed_after(lambda: (1, True)) >= 2 * SECONDS


def test_at_rest_it_does_not_pass() -> None:
    looked, passed = threading.Event(), threading.Event()

    def look() -> tuple[object, bool]:
        looked.set()
        return 1, False

    deadline = Deadline(SECONDS, passed.set, look)
    deadline.arm()
    assert looked.wait(10.0)
    deadline.rest()
    assert not passed.wait(2 * SECONDS)
    deadline.close()
