"""Imports go downwards only; a planted violation of each rule is red."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from architecture.layer import LEAVES, ONLY_IN, ORDER, allowed, runtime_violations, sdk_violations
from architecture.source import PYTHON_SDK, ROOT, RUNTIME

Rule = Callable[[Path], Iterator[str]]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the two Python source trees."""
    for top in (RUNTIME, PYTHON_SDK):
        shutil.copytree(ROOT / top, tmp_path / top, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    return tmp_path


def planted(copy: Path, rule: Rule, file: str, line: str) -> list[str]:
    """Append an import to a file of the copy; return what the rule finds that it did not find before."""
    before = list(rule(copy))
    path = copy / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(text + f"\n\ndef planted():\n    {line}\n", encoding="utf-8")
    return [found for found in rule(copy) if found not in before]


def test_runtime_keeps_its_layers() -> None:
    assert "\n".join(runtime_violations(ROOT)) == ""


def test_sdk_uses_the_standard_library_alone() -> None:
    assert "\n".join(sdk_violations(ROOT)) == ""


def test_every_package_of_the_runtime_has_a_layer() -> None:
    packages = {path.parent.name for path in (ROOT / RUNTIME / "wallaroo_runtime").glob("*/__init__.py")}
    assert packages == {*ORDER, *LEAVES}


UPWARDS = [(low, high) for at, low in enumerate(ORDER) for high in ORDER[:at]]
SIDEWAYS = [(leaf, other) for leaf in LEAVES for other in [*ORDER[:-1], *LEAVES] if other not in allowed(leaf)]


@pytest.mark.parametrize(("package", "target"), UPWARDS + SIDEWAYS)
def test_planted_import_of_a_package(copy: Path, package: str, target: str) -> None:
    file = f"{RUNTIME}/wallaroo_runtime/{package}/planted.py"
    (found,) = planted(copy, runtime_violations, file, f"from wallaroo_runtime.{target} import x")
    assert f"{package}/planted.py:4: imports wallaroo_runtime.{target}.x" in found


@pytest.mark.parametrize("target", LEAVES)
@pytest.mark.parametrize("package", ["worker", "plan", "topology", "errors"])
def test_planted_import_of_a_leaf(copy: Path, package: str, target: str) -> None:
    file = f"{RUNTIME}/wallaroo_runtime/{package}/planted.py"
    assert len(planted(copy, runtime_violations, file, f"import wallaroo_runtime.{target}")) == 1


@pytest.mark.parametrize("library", ONLY_IN)
@pytest.mark.parametrize("package", [*ORDER, *LEAVES])
def test_planted_import_of_a_library(copy: Path, package: str, library: str) -> None:
    file = f"{RUNTIME}/wallaroo_runtime/{package}/planted.py"
    found = planted(copy, runtime_violations, file, f"import {library}")
    assert len(found) == (package not in ONLY_IN[library]), found


@pytest.mark.parametrize(
    "line", ["import wallaroo", "from wallaroo import topology", "from wallaroo.worker import server"]
)
def test_planted_import_of_the_sdk(copy: Path, line: str) -> None:
    assert len(planted(copy, runtime_violations, f"{RUNTIME}/wallaroo_runtime/plan/planted.py", line)) == 1


def test_planted_relative_import(copy: Path) -> None:
    file = f"{RUNTIME}/wallaroo_runtime/topology/planted.py"
    assert len(planted(copy, runtime_violations, file, "from ..plan import stage")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "import grpc",
        "from google.protobuf import message",
        "from numpy import array",
        "import wallaroo.worker",
        "import wallaroo_runtime",
    ],
)
def test_planted_import_in_the_sdk(copy: Path, line: str) -> None:
    assert len(planted(copy, sdk_violations, f"{PYTHON_SDK}/wallaroo/planted.py", line)) == 1


def test_planted_import_in_the_python_worker(copy: Path) -> None:
    assert len(planted(copy, sdk_violations, f"{PYTHON_SDK}/wallaroo/worker/planted.py", "import pyspark")) == 1
    assert not planted(copy, sdk_violations, f"{PYTHON_SDK}/wallaroo/worker/other.py", "import grpc")
