"""Applications drawn at random give what a sequential reference gives; planted faults show.

Those in micro-batches of Spark are in runtime/tests/test_model_spark.py, which shares its session with other tests.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

from model.application import GO, PYTHON
from model.in_go import Memory, timed
from model.in_kit import run_in_kit
from model.in_memory import run_in_memory
from model.mutation import FAULTS, planted
from model.search import Run, search
from model.worker import Nursery
from support.drawn_seed import AFTER, SEED, SESSIONS, TIMED

ENOUGH = 600  # drawn applications within which each planted fault shows
LANGUAGES = {"frames cut": (GO,), "twice at a crossing": (PYTHON, GO)}  # of the faults that one in Python does not show


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """Give what starts workers fast."""
    found = Nursery()
    yield found
    found.close()


@pytest.fixture
def local(nursery: Nursery) -> Run:
    """Give what runs an application without Spark."""
    return lambda application, directory: run_in_memory(application, nursery, directory)


@pytest.mark.slow
def test_drawn_applications(local: Run) -> None:
    assert search(local, 6, number=SEED) >= 6


@pytest.mark.slow
def test_drawn_windows_after_windows(local: Run) -> None:
    """Several ticks come without a message between them, before and after borders of micro-batches."""
    assert search(local, 4, number=SEED, languages=(PYTHON,), begins=AFTER) >= 4
    assert search(local, 1, number=SEED, languages=(GO,), begins=AFTER) >= 1
    assert search(local, 3, number=SEED, languages=(PYTHON,), begins=SESSIONS) >= 3


@pytest.mark.slow
def test_drawn_times_of_states(local: Run) -> None:
    assert search(local, 10, number=SEED, languages=(PYTHON,), begins=TIMED) >= 10
    assert search(local, 1, number=SEED, languages=(GO,), begins=TIMED) >= 1


@pytest.mark.slow
def test_drawn_applications_in_the_test_kit() -> None:
    assert search(run_in_kit, 5, number=SEED, languages=(PYTHON,), prepare=timed) >= 5
    assert search(run_in_kit, 4, number=SEED, languages=(PYTHON,), prepare=timed, begins=AFTER) >= 4
    assert search(run_in_kit, 3, number=SEED, languages=(PYTHON,), prepare=timed, begins=SESSIONS) >= 3
    assert search(run_in_kit, 3, number=SEED, languages=(PYTHON,), prepare=timed, begins=TIMED) >= 3


@pytest.mark.slow
def test_drawn_applications_in_the_memory_of_go() -> None:
    memory = Memory()
    try:
        assert search(memory.run, 60, number=SEED, languages=(GO,), prepare=timed) >= 60
        assert search(memory.run, 10, number=SEED, languages=(GO,), prepare=timed, begins=AFTER) >= 10
        assert search(memory.run, 10, number=SEED, languages=(GO,), prepare=timed, begins=SESSIONS) >= 10
        assert search(memory.run, 20, number=SEED, languages=(GO,), prepare=timed, begins=TIMED) >= 20
    finally:
        memory.close()


@pytest.mark.long
def test_many_drawn_applications(local: Run) -> None:
    assert search(local, 140, number=random.randrange(1 << 32)) >= 140
    assert search(local, 30, number=random.randrange(1 << 32), begins=AFTER) >= 30
    assert search(local, 60, number=random.randrange(1 << 32), begins=TIMED) >= 60
    number = random.randrange(1 << 32)
    for begins in ((), AFTER, SESSIONS, TIMED):
        assert search(run_in_kit, 20, number=number, languages=(PYTHON,), prepare=timed, begins=begins) >= 20


@pytest.mark.long
@pytest.mark.jvm
def test_drawn_applications_in_realtime() -> None:
    """In a process of its own: its Java has operators that the Java of another session has not."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-m", "model.in_realtime", str(random.randrange(1 << 32)), "15", "3"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=850, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_those_of_the_code(fault: str) -> None:
    with planted(fault):
        pass


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, local: Run) -> None:
    with planted(fault), pytest.raises(AssertionError):
        search(local, ENOUGH, number=SEED, languages=LANGUAGES.get(fault, (PYTHON,)), shrinks=False)
