"""Applications drawn at random give between DataFrames what a sequential reference gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from model.applied import in_bags, run_applied
from model.search import search
from model.worker import Nursery
from support.drawn_seed import SEED

pytestmark = pytest.mark.jvm


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    """Give what starts workers fast."""
    found = Nursery()
    yield found
    found.close()


def test_drawn_applications(spark: Any, nursery: Nursery) -> None:
    def run(application: Any, folder: Path) -> Any:
        return run_applied(spark, application, nursery, folder, live=False)

    assert search(run, 4, number=SEED, shrinks=False, prepare=in_bags) >= 4


@pytest.mark.long
def test_drawn_applications_in_a_stream(spark: Any, nursery: Nursery) -> None:
    def run(application: Any, folder: Path) -> Any:
        return run_applied(spark, application, nursery, folder, live=True)

    assert search(run, 8, number=SEED, shrinks=False, prepare=in_bags) >= 8
