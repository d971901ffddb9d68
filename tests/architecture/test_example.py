"""Examples in docstrings do what they print; those of Go are tests of their packages already."""

import doctest
import importlib
from collections.abc import Iterator

import pytest

from architecture.source import PYTHON_SDK, ROOT, RUNTIME, hand_written, module_of


def modules() -> Iterator[str]:
    """Give the modules whose docstrings have examples."""
    for top in (PYTHON_SDK, RUNTIME):
        for file in hand_written(ROOT, ".py"):
            if file.startswith(f"{top}/") and ">>> " in (ROOT / file).read_text(encoding="utf-8"):
                yield module_of(file, top)


@pytest.mark.parametrize("name", list(modules()))
def test_examples_do_what_they_print(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0, "no example of the module was found"
    assert result.failed == 0
