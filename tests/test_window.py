"""Windows stay exact while workers and the driver die; `make windows` is the long run."""

from pathlib import Path

import pytest

from support.run import MODES
from window import APPS, check

pytestmark = [pytest.mark.jvm, pytest.mark.long]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("language", APPS)
def test_windows_are_those_of_the_reference(language: str, mode: str, tmp_path: Path) -> None:
    assert check(language, 20_000, 10, tmp_path, *MODES[mode]).endswith("equal")
