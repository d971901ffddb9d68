"""Poison messages among others through `wallaroo run`; `make poison` is the run of a million."""

from pathlib import Path

import pytest

from poison import APPS, Script, poison

pytestmark = [pytest.mark.jvm, pytest.mark.long]


@pytest.mark.parametrize("language", list(APPS))
def test_exactly_the_poison_messages_are_dead_letters(language: str, tmp_path: Path) -> None:
    print(poison(language, Script.draw(100_000, 20, seed=17), tmp_path / language))
