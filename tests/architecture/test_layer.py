"""Imports go downwards only; a planted violation of each rule is red."""

from collections.abc import Callable, Collection, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from architecture.layer import (
    IMPORTS,
    JAVA_IMPORTS,
    JAVA_LINES,
    ONLY_IN,
    SDK_IMPORTS,
    SPARK_ROOMS,
    connector_violations,
    java_names,
    java_violations,
    room_of,
    runtime_violations,
    sdk_violations,
)
from architecture.source import CONNECTORS, JAVA, PYTHON_SDK, ROOT, RUNTIME, imports, module_of, texts

Rule = Callable[[str, str], Iterator[str]]


def planted(rule: Rule, file: str, line: str) -> list[str]:
    """Return what a rule finds in a file with an import within a function, at line 4."""
    return list(rule(file, f"\n\ndef planted():\n    {line}\n"))


def test_runtime_keeps_its_layers() -> None:
    assert [found for file, text in texts(RUNTIME) for found in runtime_violations(file, text)] == []


def java_files() -> dict[str, str]:
    """Return the Java files of the runtime, each with its text."""
    return {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / JAVA).rglob("*.java")}


def test_java_keeps_its_layers() -> None:
    found = java_files()
    assert [broken for file, text in found.items() for broken in java_violations(file, text)] == []
    packages = {Path(file).parent.name for file in found}
    assert packages == {*JAVA_IMPORTS} == {path.parent.name for path in (ROOT / JAVA).glob("*/package-info.java")}
    used: dict[str, set[str]] = {package: set() for package in JAVA_IMPORTS}
    for file, text in found.items():
        used[Path(file).parent.name] |= {name for _, name in java_names(text)} - {Path(file).parent.name}
    assert used == JAVA_IMPORTS


UPWARD = [(low, high) for low in JAVA_IMPORTS for high in JAVA_IMPORTS if high not in {low, *JAVA_IMPORTS[low]}]


def test_planted_names_of_other_packages_of_java() -> None:
    for low, high in UPWARD:
        file, name = f"{JAVA}/{low}/Planted.java", f"org.wallaroo.spark.{high}.Planted"
        for line in (f"import {name};", f"import static {name}.planted;", f"    private {name} planted;"):
            (broken,) = java_violations(file, f"package org.wallaroo.spark.{low};\n\n{line}\n")
            assert broken.startswith(f"{file}:3: {low} may import ") and broken.endswith(f", not {high}")


def test_planted_lines_of_java() -> None:
    lines = "\n" * (JAVA_LINES + 1)
    assert list(java_violations(f"{JAVA}/rpc/Planted.java", lines)) == [
        f"{JAVA}/rpc/Planted.java: {JAVA_LINES + 1} lines; at most {JAVA_LINES}"
    ]
    assert len(list(java_violations(f"{JAVA}/rpc/package-info.java", "\n" * 3))) == 1


def test_sdk_uses_the_standard_library_alone() -> None:
    assert [found for file, text in texts(PYTHON_SDK) for found in sdk_violations(file, text)] == []


def test_connector_programs_know_the_public_sdk_alone() -> None:
    assert [found for file, text in texts(CONNECTORS) for found in connector_violations(file, text)] == []


def test_every_package_has_a_rule() -> None:
    packages = {path.parent.name for path in (ROOT / RUNTIME / "wallaroo_runtime").glob("*/__init__.py")}
    assert packages == {*IMPORTS}
    sdk = ROOT / PYTHON_SDK / "wallaroo"
    rooms = {".".join(path.parent.relative_to(sdk).parts) for path in sdk.rglob("__init__.py")}
    assert {*rooms, "connector", "testing"} == {*SDK_IMPORTS}


@pytest.mark.parametrize(
    "rules", [IMPORTS | {"errors": set()}, SDK_IMPORTS, JAVA_IMPORTS], ids=["runtime", "sdk", "java"]
)
def test_packages_form_no_circle_and_stand_from_top_to_bottom(rules: dict[str, set[str]]) -> None:
    assert set(TopologicalSorter(rules).static_order()) == {*rules}
    names = [*rules]
    assert all(names.index(package) < names.index(used) for package, its in rules.items() for used in its)


def test_every_import_that_is_allowed_is_used() -> None:
    used: dict[str, set[str]] = {package: set() for package in IMPORTS}
    for file, text in texts(RUNTIME):
        for found in imports(file, text):
            module, package = found.module.split("."), file.removeprefix(RUNTIME).split("/")[2]
            if module[0] == "wallaroo_runtime" and package in used and module[1] != package:
                used[package].add(module[1])
    assert used == IMPORTS


def test_every_import_of_the_sdk_that_is_allowed_is_used() -> None:
    used: dict[str, set[str]] = {room: set() for room in SDK_IMPORTS}
    for file, text in texts(PYTHON_SDK):
        room = room_of(module_of(file, PYTHON_SDK))
        rooms = {room_of(found.module) for found in imports(file, text) if found.module.startswith("wallaroo.")}
        used[room] |= rooms - {room}
    assert used == SDK_IMPORTS


def test_files_of_sdk_runtime_and_connectors_import_each_other_in_no_circle() -> None:
    tops = (PYTHON_SDK, RUNTIME, CONNECTORS)
    found = {module_of(file, top): (file, text) for top in tops for file, text in texts(top)}
    used = {name: {owner(each.module, found) for each in imports(*given)} - {name} for name, given in found.items()}
    assert len([*TopologicalSorter(used).static_order()]) >= len(found)  # a circle is a CycleError that names it


def owner(name: str, modules: Collection[str]) -> str:
    """Return the module that a dotted name is, or is in; the name where none of `modules` is."""
    parts = name.split(".")
    return next((each for end in range(len(parts), 0, -1) if (each := ".".join(parts[:end])) in modules), name)


@pytest.mark.parametrize("top", [RUNTIME, PYTHON_SDK, CONNECTORS])
def test_rules_are_given_every_program(top: str) -> None:
    present = {str(path.relative_to(ROOT)) for path in (ROOT / top).rglob("*.py") if "_proto" not in path.parts}
    assert {file for file, _ in texts(top)} == present != set()


def test_planted_imports_of_rooms() -> None:
    for room, its in SDK_IMPORTS.items():
        file = f"{PYTHON_SDK}/wallaroo/{room.replace('.', '/')}/planted.py".replace("//", "/")
        for target in SDK_IMPORTS.keys() - {room, *its}:
            line = f"from wallaroo.{target} import x".replace(". ", " ")
            assert len(planted(sdk_violations, file, line)) == 1, (file, line)


FORBIDDEN = [(low, high) for low in IMPORTS for high in IMPORTS if high != low and high not in IMPORTS[low]]


def test_planted_imports_of_packages() -> None:
    for package, target in FORBIDDEN:
        file = f"{RUNTIME}/wallaroo_runtime/{package}/planted.py"
        (found,) = planted(runtime_violations, file, f"from wallaroo_runtime.{target} import x")
        assert found.startswith(f"{file}:4: imports wallaroo_runtime.{target}.x; ")


def test_planted_imports_of_libraries() -> None:
    for package in IMPORTS:
        for library, allowed in ONLY_IN.items():
            file = f"{RUNTIME}/wallaroo_runtime/{package}/planted.py"
            found = planted(runtime_violations, file, f"import {library}")
            assert len(found) == (package not in allowed), (file, library, found)


@pytest.mark.parametrize(
    "line", ["import wallaroo", "from wallaroo import topology", "from wallaroo.worker import server"]
)
def test_planted_import_of_the_sdk(line: str) -> None:
    assert len(planted(runtime_violations, f"{RUNTIME}/wallaroo_runtime/plan/planted.py", line)) == 1


def test_planted_import_of_a_room_of_spark_that_stands_above() -> None:
    for at, low in enumerate(SPARK_ROOMS):
        file = f"{RUNTIME}/wallaroo_runtime/spark/{low}/planted.py"
        lines = [f"from wallaroo_runtime.spark.{room} import x" for room in SPARK_ROOMS]
        found = [planted(runtime_violations, file, line) for line in lines]
        assert [len(each) for each in found] == [1] * at + [0] * (len(SPARK_ROOMS) - at)


def test_every_room_of_spark_has_a_place() -> None:
    rooms = {path.parent.name for path in (ROOT / RUNTIME / "wallaroo_runtime/spark").glob("*/__init__.py")}
    assert rooms == {*SPARK_ROOMS}


def test_planted_import_of_the_other_engine() -> None:
    file = f"{RUNTIME}/wallaroo_runtime/spark/planted.py"
    assert len(planted(runtime_violations, file, "from wallaroo_runtime.memory import engine")) == 1


def test_calls_of_a_worker_run_in_the_engine_in_memory_alone() -> None:
    line = "from wallaroo.worker.host.call import CallRunner"
    assert planted(runtime_violations, f"{RUNTIME}/wallaroo_runtime/memory/planted.py", line) == []
    assert len(planted(runtime_violations, f"{RUNTIME}/wallaroo_runtime/worker/planted.py", line)) == 1


def test_planted_relative_import() -> None:
    file = f"{RUNTIME}/wallaroo_runtime/topology/planted.py"
    assert len(planted(runtime_violations, file, "from ..plan import stage")) == 1


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
def test_planted_import_in_the_sdk(line: str) -> None:
    assert len(planted(sdk_violations, f"{PYTHON_SDK}/wallaroo/planted.py", line)) == 1


@pytest.mark.parametrize("line", ["import redis", "import wallaroo_runtime", "from wallaroo.worker import server"])
def test_planted_import_in_a_connector_program(line: str) -> None:
    assert len(planted(connector_violations, f"{CONNECTORS}/wallaroo_connectors/planted.py", line)) == 1


def test_planted_import_in_the_test_kit() -> None:
    file = f"{PYTHON_SDK}/wallaroo/testing.py"
    assert len(planted(sdk_violations, file, "from wallaroo_runtime.spark import query")) == 1
    assert len(planted(sdk_violations, file, "import jsonschema")) == 1
    assert planted(sdk_violations, file, "from wallaroo_runtime.memory import start") == []


def test_planted_import_in_the_python_worker() -> None:
    assert len(planted(sdk_violations, f"{PYTHON_SDK}/wallaroo/worker/planted.py", "import pyspark")) == 1
    assert not planted(sdk_violations, f"{PYTHON_SDK}/wallaroo/worker/other.py", "import grpc")
