"""Examples in docstrings do what they print; functions and entry classes have one; those of Go are tests."""

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.source import PYTHON_SDK, ROOT, RUNTIME, hand_written, module_of
from architecture.surface import GO_PACKAGES, example_violations, go_example_violations, surface


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


def test_each_function_and_entry_class_has_an_example() -> None:
    assert "\n".join(example_violations(surface())) == ""


@pytest.mark.slow
def test_each_function_and_type_of_go_has_an_example() -> None:
    assert "\n".join(go_example_violations(ROOT / "api" / "go", GO_PACKAGES)) == ""


class Bell:
    """Rings.

    Example:
        >>> Bell()
        <Bell>
    """


class Silent(Bell):
    """Does not ring, though a Bell() does."""


class Loud(Bell):
    pass


class Crack(Exception):
    """Ends a bell."""


class Imported:
    """Is not used where it is imported.

    Example:
        >>> from bells import Imported
        >>> Bell(), "Imported"  # Imported
        (<Bell>, 'Imported')
    """


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Bell, []),
        (Crack, []),
        (Silent, ["tower.Silent: its docstring has no example"]),
        (Loud, ["tower.Loud: the example of its docstring does not use it"]),
        (Imported, ["tower.Imported: the example of its docstring does not use it"]),
    ],
)
def test_planted_name_without_an_example(value: type, expected: list[str]) -> None:
    assert list(example_violations({f"tower.{value.__name__}": value})) == expected


BELLS = """package bells

type Bell struct{}

func (Bell) Ring() string { return "ding" }

type Gong struct{}

func (Gong) Ring() string { return "dong" }

func Cast() Bell { return Bell{} }

func Crack() {}
"""
GO_EXAMPLES = """package bells_test

import (
    "bells"
    "fmt"
)

func ExampleCast() {
    fmt.Println(bells.Cast().Ring())
    // Output: ding
}

func ExampleGong() { fmt.Println(bells.Gong{}, "bells.Crack()") }
"""
GO_TEST = """package bells_test

import (
    "bells"
    "testing"
)

func TestCrack(*testing.T) { bells.Crack() }
"""


@pytest.mark.slow
def test_planted_go_names_without_an_example(tmp_path: Path) -> None:
    texts = {"bells.go": BELLS, "example_test.go": GO_EXAMPLES, "bells_test.go": GO_TEST}
    for name, text in {"go.mod": "module bells\n\ngo 1.24\n", **texts}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert go_example_violations(tmp_path, (".",)) == [
        "bells: ExampleGong is not run: it has no output",
        "bells.Crack: no example of its package uses it",
    ]
