"""Windows stay exact while a worker and the driver die; `make windows` is the long run."""

from pathlib import Path

import pytest

from window import WINDOWS, check

pytestmark = [pytest.mark.jvm, pytest.mark.long]


@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_are_those_of_the_reference(kind: str, tmp_path: Path) -> None:
    assert check(kind, 60_000, 3_000, tmp_path).endswith("equal")
