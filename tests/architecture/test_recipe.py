"""What CONTRIBUTING's recipes say of files is so."""

import subprocess
from pathlib import Path

import pytest

from architecture.source import ROOT
from wallaroo_runtime.plan.counter import COUNTERS

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PRODUCT = ("api", "runtime", "topology-schema", "docs", "examples")
WINDOWS = "docs/windows.md"  # what its page of the documentation says of `dropped_late`


def named(recipe: str) -> set[str]:
    """Return the files of a recipe, by their ends."""
    body = TEXT.split(f"**{recipe}**")[1].split("\n\n")[0]
    return {word for word in body.split("`")[1::2] if "/" in word and "." in word}


def holding(text: str) -> set[str]:
    """Return the files of the product that have a text; tests and generated code are none."""
    command = ["git", "grep", "--cached", "-lw", text, "--", *PRODUCT, ":!*test*", ":!*.pb.go", ":!*_pb2*"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {name for name in found if not name.endswith("_case.py")}


def test_a_counter_is_in_the_files_that_its_recipe_names_and_in_no_other() -> None:
    files = named("A counter of steps.")
    found = holding("dropped_late")
    assert len(found) <= 6
    assert {next((each for each in files if Path(path).match(each)), path) for path in found} == files


@pytest.mark.parametrize("name", sorted(COUNTERS))
def test_a_counter_is_declared_specified_and_documented(name: str) -> None:
    places = {"runtime/src/wallaroo_runtime/plan/counter.py", "topology-schema/SPECIFICATION.md", "docs/monitor.md"}
    assert places <= holding(name)
