"""The deadline of a call: it counts from the last progress."""

import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from unittest.mock import MagicMock

import grpc
import pytest

from wallaroo_runtime.worker.channel import Broken, Stream
from wallaroo_runtime.worker.deadline import LEAST_LOOKS, Deadline
from wallaroo_runtime.worker.flight import InFlight
from wallaroo_runtime.worker.poison import Cause, Ending

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


def test_it_passes_after_several_looks_however_late_they_come() -> None:
    """What holds up the one who looks, as an overloaded machine, holds up the worker, too."""
    looks, seconds, passed = 0, 0.1, threading.Event()

    def look() -> tuple[object, InFlight]:
        nonlocal looks
        looks += 1
        time.sleep(1.1 * seconds)
        return 1, InFlight.OWN

    deadline = Deadline(seconds, passed.set, look)
    deadline.arm()
    assert passed.wait(10.0)
    deadline.close()
    assert looks > LEAST_LOOKS


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


class SilentCall:
    """A call without a reply, until it is given up."""

    def __init__(self) -> None:
        self._over = threading.Event()

    def cancel(self) -> None:
        self._over.set()

    def __next__(self) -> NoReturn:
        assert self._over.wait(10.0)
        raise grpc.RpcError


@pytest.mark.parametrize(("killed_for", "cause"), [("it gave no answer", Cause.HUNG), ("", Cause.CRASHED)])
def test_a_message_in_a_process_that_ended_by_itself_has_not_hung(
    tmp_path: Path, killed_for: str, cause: Cause
) -> None:
    """The end of a process may be noticed late; the deadline has passed then."""
    channel, endpoints = MagicMock(slowest=0.0), MagicMock()
    channel.spec.deadline_ms, endpoints.connection.directory = 100, tmp_path
    stream = Stream(channel, endpoints, "s1", call=SilentCall())
    assert stream.flight is not None
    at_work = {stream.flight.path.name: (3, 7), "flight-of-another-stream": (5, 9)}
    channel.recover.return_value = Ending(4, killed_for, at_work, is_excused=True)
    stream.flight.path.write_bytes(struct.pack("<4Q", 3, 7 + 1, 15, 0))
    stream.deadline.arm()
    with pytest.raises(Broken) as broken:
        stream.receive()
    suspect = broken.value.suspect
    assert suspect is not None
    assert (suspect.index, suspect.ordinal, suspect.cause, suspect.is_shared) == (3, 7, cause, cause is Cause.CRASHED)
