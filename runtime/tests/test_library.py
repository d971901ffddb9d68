"""Components of other programs: found, compared with what steps need, their workers put into the document."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.app import AppKind, resolve
from wallaroo_runtime.program.emit import emit
from wallaroo_runtime.program.library import find_library, join_libraries
from wallaroo_runtime.topology.load import load_document

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
DOCUMENT = json.loads((VALID / "word_count.json").read_bytes())
WORKER = DOCUMENT["workers"][0]
SCORE = {
    "name": "score", "kind": "computation", "input": "json", "output": "string", "symbol": "main.Score",
    "file": "score.go",
}  # fmt: skip


def program(component: str = "score", **more: str) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    pipeline = document["pipelines"][0]
    pipeline["sources"][0]["codec"] = "json"
    step = {
        "path": "0/steps/0", "name": "score", "kind": "computation", "inputs": ["0/sources/0"], "codec": "string",
        "worker": "scorer", "component": component, **more,
    }  # fmt: skip
    pipeline["steps"] = [step]
    pipeline["sinks"][0]["inputs"] = ["0/steps/0"]
    document["workers"][0]["components"] = []
    return document


def library(*components: dict[str, Any]) -> dict[str, Any]:
    return {"library": {"worker": WORKER | {"language": "go", "components": []}, "components": list(components)}}


def test_the_worker_is_put_into_the_document() -> None:
    document = program()
    join_libraries(document, {"scorer": ("scorer", library(SCORE))})
    first, second = load_document(document).workers
    assert (first.name, second.name, second.language) == ("main", "scorer", "go")
    (component,) = second.components
    assert (component.path, component.symbol, component.file) == ("0/steps/0", "main.Score", "score.go")


@pytest.mark.parametrize(
    ("document", "result", "expected"),
    [
        (
            program("scorr"),
            library(SCORE),
            'T259 component "scorr" of worker "scorer" is not known; app has "score"; did you mean "score"?\n'
            "  at /pipelines/0/steps/0\n  fix: name one of these, or add the component to the library",
        ),
        (
            program(kind="computation_multi"),
            library(SCORE),
            'T260 worker "scorer": app has component "score" with kind "computation"; expected '
            'kind "computation_multi"\n'
            "  at /pipelines/0/steps/0\n  fix: declare the same in both programs",
        ),
        (
            program(),
            library(SCORE | {"input": "bytes"}),
            'T260 worker "scorer": app has component "score" with input "bytes"; expected input "json"\n'
            "  at /pipelines/0/steps/0\n  fix: declare the same in both programs",
        ),
        (
            program(),
            {"topology": DOCUMENT},
            'T260 worker "scorer": app declares an application of its own; expected components for other programs\n'
            "  fix: return a library",
        ),
    ],
)
def test_what_does_not_fit_is_told(document: dict[str, Any], result: dict[str, Any], expected: str) -> None:
    with pytest.raises(RunError) as caught:
        join_libraries(document, {"scorer": ("app", result)})
    assert str(caught.value) == expected


def test_programs_are_found_beside_the_one_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "scorer.py").write_text("")
    found = find_library("scorer", tmp_path, "scorer.py:setup")
    assert (found.kind, found.target) == (AppKind.PYTHON_FILE, f"{tmp_path / 'scorer.py'}:setup")
    (tmp_path / "document.json").write_text("{}")
    with pytest.raises(RunError) as caught:
        find_library("scorer", tmp_path, "document.json")
    assert caught.value.diagnostics[0].code == "R609"
    assert 'worker "scorer" needs a program; this is a topology' in caught.value.diagnostics[0].message


@pytest.mark.slow
def test_a_library_alone_cannot_be_run(tmp_path: Path) -> None:
    result = json.dumps(library(SCORE))
    script = tmp_path / "scorer"
    script.write_text(f"#!/bin/sh\ncat > \"$WALLAROO_EMIT_FILE\" <<'END'\n{result}\nEND\n")
    script.chmod(0o755)
    with pytest.raises(RunError) as caught:
        emit(resolve(str(script)), [])
    assert caught.value.diagnostics[0].code == "T201"
    assert caught.value.diagnostics[0].message == f"{script} gives no application; it is a library of components"
