"""Names of things: docstrings, results and classes; each rule sees a planted violation."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from architecture import naming
from architecture.source import ROOT

Rule = Callable[[Path], Iterator[str]]
SDK = "api/python/src/wallaroo/a.py"


@pytest.mark.parametrize("rule", [naming.clause_violations, naming.found_violations, naming.class_violations])
def test_the_product_names_things(rule: Rule) -> None:
    assert "\n".join(rule(ROOT)) == ""


@pytest.mark.parametrize(
    ("first", "is_clause"),
    [
        ("Return what is counted.", True),
        ("Says who waits.", True),
        ("How far a sink is.", True),
        ("Yield whose turn it is.", True),
        ("Return that which is left.", True),
        ("Return the names of files whose lines fit.", False),
        ("Yield the waiting threads.", False),
    ],
)
def test_a_clause_in_the_place_of_a_noun_is_seen(first: str, is_clause: bool) -> None:
    assert bool(naming.CLAUSE.search(first)) == is_clause


def planted(root: Path, rule: Rule, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return list(rule(root))


def test_planted_clauses(tmp_path: Path) -> None:
    found = planted(tmp_path, naming.clause_violations, {SDK: '"""A module."""\ndef f():\n    """Return what is."""\n'})
    assert found[1:] == [f"{SDK}:3: Return what is."]


def test_planted_results(tmp_path: Path) -> None:
    few, many = ("\n".join(["found = 1"] * count) for count in (naming.MOST_FOUND, naming.MOST_FOUND + 1))
    assert planted(tmp_path, naming.found_violations, {SDK: few}) == []
    assert len(planted(tmp_path, naming.found_violations, {SDK: many})) == naming.MOST_FOUND + 1


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({SDK: "class A: ...", "runtime/src/wallaroo_runtime/b.py": "class A: ..."}, ["A is the name of 2 classes"]),
        ({"api/go/a/a.go": "type A struct {\n", "api/go/b/b.go": "type A[T any] struct {\n"}, ["A is the name of 2"]),
        ({"api/go/a/a.go": "type A int\n", "api/go/b/b.go": "type A = a.A\n", "api/go/b_test.go": "type A int\n"}, []),
        ({f"{naming.JAVA}/A.java": "final class A {\n  // class A\n  record A() {}\n}"}, ["A is the name of 2"]),
    ],
)  # fmt: skip
def test_planted_classes(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    violations = [each for each in planted(tmp_path, naming.class_violations, files) if "listed" not in each]
    assert [each[: len(text)] for each, text in zip(violations, expected, strict=True)] == expected


def test_a_reason_that_no_longer_holds_is_seen(tmp_path: Path) -> None:
    violations = planted(tmp_path, naming.class_violations, {SDK: "class Sink: ..."})
    assert "Sink: listed as shared, but is not" in violations
