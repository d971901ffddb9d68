"""Applications drawn at random give on Spark what a sequential reference gives; other engines: tests/test_model.py."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from model.on_spark import run_on_spark
from model.search import Run, search
from model.worker import Nursery
from support.drawn_seed import AFTER, SEED, TIMED

pytestmark = pytest.mark.jvm


@pytest.fixture
def on_spark(spark: Any) -> Iterator[Run]:
    """Give what runs an application on the one Spark session of this test run."""
    nursery = Nursery()
    yield lambda application, directory: run_on_spark(spark, application, nursery, directory)
    nursery.close()


def test_drawn_applications(on_spark: Run) -> None:
    assert search(on_spark, 2, number=SEED, shrinks=False) >= 2
    assert search(on_spark, 1, number=SEED, shrinks=False, begins=AFTER) >= 1
    assert search(on_spark, 1, number=SEED, shrinks=False, begins=TIMED) >= 1


@pytest.mark.long
def test_many_drawn_applications(on_spark: Run) -> None:
    assert search(on_spark, 25, number=random.randrange(1 << 32), shrinks=False) >= 25
    assert search(on_spark, 5, number=random.randrange(1 << 32), shrinks=False, begins=AFTER) >= 5
    assert search(on_spark, 8, number=random.randrange(1 << 32), shrinks=False, begins=TIMED) >= 8
