"""What CONTRIBUTING's recipes say of files and names is so."""

import re
import subprocess
from pathlib import Path

import pytest

from architecture.document import FOLDERS
from architecture.source import ROOT
from wallaroo_runtime.plan.counter import COUNTERS

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PRODUCT = ("api", "runtime", "topology-schema", "docs", "examples")
WINDOWS = "docs/windows.md"  # as the page of a feature: what counts in it
JAVA = "runtime/java/src/main/java/org/wallaroo/spark"
FILE = r"[\w./-]+\.(py|go|java|md|json|proto|toml|js)"
TITLE = re.compile(r"^\*\*(An? [^*]+?)\.?\*\*", re.MULTILINE)
RECIPES = dict(zip(TITLE.findall(TEXT), TITLE.split(TEXT)[2::2], strict=True))


def quoted(recipe: str) -> list[str]:
    """Return what is in backticks."""
    return re.findall(r"`([^`]+)`", RECIPES[recipe].split("\n\n")[0])


def files(recipe: str) -> dict[str, Path]:
    """Return the files of a recipe by what they are called there."""
    names = [word for word in quoted(recipe) if re.fullmatch(FILE, word)]
    places = {name: [ROOT / folder / name for folder in (*FOLDERS, JAVA)] for name in names}
    return {name: next((each for each in found if each.is_file()), found[0]) for name, found in places.items()}


def holding(text: str) -> set[Path]:
    """Return the files of the product that have a text; tests and generated code are none."""
    command = ["git", "grep", "--cached", "-lw", text, "--", *PRODUCT, ":!*test*", ":!*.pb.go", ":!*_pb2*"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {ROOT / name for name in found if not name.endswith("_case.py")}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_files_of_a_recipe_are_there_and_have_its_names(recipe: str) -> None:
    found = files(recipe)
    assert [name for name, file in found.items() if not file.is_file()] == []
    texts = [file.read_text(encoding="utf-8") for file in found.values()]
    names = {
        word.rpartition(".")[2]
        for word in quoted(recipe)
        if re.fullmatch(r"[A-Za-z_][\w.]*", word) and not re.fullmatch(FILE, word)
    }
    lost = [name for name in sorted(names) if not any(re.search(rf"\b{name}\b", text) for text in texts)]
    assert [name for name in lost if not holding(name)] == []
    assert not [word[5:] for word in quoted(recipe) if word.startswith("make ") and not is_target(word.split()[1])]


def is_target(name: str) -> bool:
    return re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), re.MULTILINE) is not None


def test_a_counter_is_in_the_files_that_its_recipe_names_and_in_no_other() -> None:
    found, named = holding("dropped_late"), set(files("A counter of steps").values())
    pages = {file for file in found if file.parent == ROOT / "docs"} - named
    assert len(found) <= 6
    assert found - pages == named - ({ROOT / WINDOWS} if pages else set())


@pytest.mark.parametrize("name", sorted(COUNTERS))
def test_a_counter_is_declared_specified_and_documented(name: str) -> None:
    places = ("runtime/src/wallaroo_runtime/plan/counter.py", "topology-schema/SPECIFICATION.md", "docs/monitor.md")
    assert {ROOT / place for place in places} <= holding(name)
