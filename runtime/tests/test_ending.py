"""How a process of a worker ended, and which messages were in flight then."""

import json
import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from wallaroo_runtime.worker.ending import LEFT, PREFIX, Ending, is_own, look_back

NUMBERS = count()


def noted(directory: Path, call: int, message: int, process: int, end: str = "") -> Path:
    """Return a file in which a worker has noted something; its client lives."""
    path = directory / f"{PREFIX}{os.getpid()}-{next(NUMBERS)}{end}"
    path.write_bytes(struct.pack("<4Q", call, message, process, 0) + bytes(224))
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Give the directory of a worker, which nothing is to be left in but files of open streams."""
    yield tmp_path
    assert not list(tmp_path.glob(f"*{LEFT}"))


def test_messages_at_work_in_the_process_that_ended_first(directory: Path) -> None:
    here, there, rest = noted(directory, 3, 8, 100), noted(directory, 0, 1, 101), noted(directory, 5, 0, 100)
    assert look_back(directory, 100, 3) == (3, {here.name: (3, 7)})
    (directory / "ended.json").write_text(json.dumps({"process_id": 101, "status": -11}))
    assert look_back(directory, 100, 1) == (-11, {there.name: (0, 0)})
    assert not (directory / "ended.json").exists()
    (directory / "ended.json").write_text("{")
    assert look_back(directory, 100, 1) == (1, {})
    for file in (here, there, rest):
        file.unlink()
    assert look_back(directory, 102, 3) == (3, {})


def test_a_message_of_a_stream_that_was_given_up_is_at_work(directory: Path) -> None:
    """Its user code still runs, and may end the process while a message of another stream is in flight."""
    given_up, other = noted(directory, 3, 8, 100, LEFT), noted(directory, 1, 5, 100)
    assert look_back(directory, 100, 4) == (4, {given_up.name: (3, 7), other.name: (1, 4)})
    assert list(directory.iterdir()) == [other]


@pytest.mark.slow
def test_files_of_a_client_that_was_killed_are_removed(directory: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    (directory / f"flight-{gone.pid}-0").write_bytes(struct.pack("<4Q", 0, 1, 100, 0))
    assert look_back(directory, 100, 3) == (3, {f"flight-{gone.pid}-0": (0, 0)})
    assert not list(directory.iterdir())


STATUSES = some.sampled_from(signal.Signals).map(lambda number: -number) | some.integers(0, 255)


@given(
    STATUSES, some.text(), some.booleans(), some.text(),
    some.dictionaries(some.text(), some.tuples(some.integers(0, 1 << 62), some.integers(0, 1 << 62))),
)  # fmt: skip
def test_an_ending_crosses_to_its_readers(
    status: int, killed_for: str, is_excused: bool, memory: str, at_work: dict[str, tuple[int, int]]
) -> None:
    ending = Ending(status, killed_for, at_work, is_excused, memory)
    told = json.loads(json.dumps(ending.to_json()))
    assert Ending.from_json(told) == ending
    assert told["text"] == ending.text
    assert (killed_for or memory) in ending.text


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (0, True),
        (3, True),
        (-signal.SIGSEGV, True),
        (-signal.SIGABRT, True),
        (-signal.SIGKILL, False),
        (-signal.SIGTERM, False),
    ],
)
def test_what_a_process_ended_of(status: int, expected: bool) -> None:
    assert is_own(status) == expected
