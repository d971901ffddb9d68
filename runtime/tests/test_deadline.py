"""The deadline of a call: it counts from the last progress."""

import threading
import time
from collections.abc import Callable

import pytest

from wallaroo_runtime.worker.deadline import Deadline
from wallaroo_runtime.worker.flight import InFlight

SECONDS = 0.4


def passed_after(look: Callable[[], tuple[object, InFlight]], limit: float = 10.0) -> float:
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
    assert SECONDS <= passed_after(lambda: (1, InFlight.OWN)) < 2 * SECONDS


def test_progress_puts_it_off_as_long_as_there_is_any() -> None:
    begin = time.monotonic()

    def look() -> tuple[object, InFlight]:
        return min(time.monotonic() - begin, 4 * SECONDS), InFlight.OWN

    assert passed_after(look) >= 5 * SECONDS


def test_behind_another_call_it_waits_twice_as_long() -> None:
    assert passed_after(lambda: (1, InFlight.OTHER)) >= 2 * SECONDS


@pytest.mark.parametrize(("flying", "times"), [(InFlight.OWN, 0.5), (InFlight.NONE, 1), (InFlight.OTHER, 2)])
def test_a_shorter_time_is_for_messages_alone(flying: InFlight, times: float) -> None:
    """A worker that has hung may read, write and wait as long as before: only its messages are under suspicion."""
    passed = threading.Event()
    deadline = Deadline(SECONDS, passed.set, lambda: (1, flying))
    deadline.seconds = SECONDS / 2
    begin = time.monotonic()
    deadline.arm()
    assert passed.wait(10.0)
    deadline.close()
    assert times * SECONDS <= time.monotonic() - begin < (2 * times + 1) * SECONDS


def test_at_rest_it_does_not_pass() -> None:
    looked, passed = threading.Event(), threading.Event()

    def look() -> tuple[object, InFlight]:
        looked.set()
        return 1, InFlight.OWN

    deadline = Deadline(SECONDS, passed.set, look)
    deadline.arm()
    assert looked.wait(10.0)
    deadline.rest()
    assert not passed.wait(2 * SECONDS)
    deadline.close()
