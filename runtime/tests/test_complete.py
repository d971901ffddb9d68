"""`wallaroo complete`: what a person leaves out of a topology is added as front-ends write it."""

import copy
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.topology.canonical import canonical_text, interface_hash
from wallaroo_runtime.topology.complete import complete
from wallaroo_runtime.topology.load import load_document

ROOT = Path(__file__).parents[2]
GOLDEN = sorted(path.parent.name for path in ROOT.glob("tests/cases/*/topology.json"))
NO_HASH = "sha256:" + "0" * 64
# A worker whose every property can be left out, but for language and command.
WORKER = {
    "name": "main", "language": "go", "sdk_version": "1.2.3", "protocol_version": 1, "command": ["./app"],
    "directory": "/srv/app", "args": [], "call_deadline_ms": 60000, "interface_hash": NO_HASH, "code_hash": NO_HASH,
    "components": [],
}  # fmt: skip
DEFAULTS = {
    "max_message_bytes": 16777216, "codec": "native", "cookie": "", "max_credits": 100000, "refill_credits": 50000,
    "options": {}, "start": "start", "value": "value", "delay_ms": 0, "late": "drop", "flush_ms": 5000,
    "key": {"kind": "message"}, "values": [], "unknown": "create",
}  # fmt: skip


def whole(name: str) -> dict[str, Any]:
    """Return a topology as front-ends emit it, with workers: the program's own, and those of libraries."""
    document: dict[str, Any] = json.loads((ROOT / "tests" / "cases" / name / "topology.json").read_text("utf-8"))
    steps = [step for pipeline in document["pipelines"] for step in pipeline["steps"]]
    others = sorted({step["worker"] for step in steps} - {"main"})
    document["workers"] = [copy.deepcopy(WORKER), *({**copy.deepcopy(WORKER), "name": other} for other in others)]
    document["workers"][0]["interface_hash"] = interface_hash(load_document(document))
    return document


def omissible(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each object and property that may be left out: the rules of the specification, read from the result."""
    yield document, "topology_version"
    pipelines = document["pipelines"]
    states = [step["state"]["name"] for line in pipelines for step in line["steps"] if "state" in step]
    for worker in document["workers"]:
        yield from ((worker, name) for name, value in WORKER.items() if worker[name] == value and name in OPTIONAL)
        if worker["name"] == "main":
            yield worker, "interface_hash"
        if len(document["workers"]) == 1:
            yield worker, "name"
    for pipeline in pipelines:
        if len(pipelines) == 1 and pipeline["name"] == document["name"]:
            yield pipeline, "name"
        yield from ((pipeline, kind) for kind in ("steps", "sinks") if not pipeline[kind])
        for part in (*pipeline["sources"], *pipeline["sinks"]):
            if part["name"] == pipeline["name"]:
                yield part, "name"
        for part in (*pipeline["sources"], *pipeline["steps"], *pipeline["sinks"]):
            yield part, "path"
            if part["worker"] == "main":
                yield part, "worker"
            yield from ((part, name) for name in DEFAULTS if part.get(name, ()) == DEFAULTS[name])
        yield from _inputs(pipeline)
        for step in pipeline["steps"]:
            if step["kind"] == "collect":
                yield step, "name"
            if "state" in step:
                yield from _state(step, states)
            if "window" in step:
                yield from _window(step["window"], {source["kind"] for source in pipeline["sources"]})


OPTIONAL = ("sdk_version", "protocol_version", "directory", "args", "call_deadline_ms", "code_hash", "components")


def _inputs(pipeline: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    before = [source["path"] for source in pipeline["sources"]]
    for part in (*pipeline["steps"], *pipeline["sinks"]):
        if part["inputs"] == before and len(before) == 1:
            yield part, "inputs"
        if part in pipeline["steps"] and part["kind"] != "output":
            before = [part["path"]]


def _state(step: dict[str, Any], states: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    state = step["state"]
    is_own = state["name"] == step["name"] and states.count(step["name"]) == 1
    if is_own and state["key"] == DEFAULTS["key"] and "ttl_ms" not in state:
        yield step, "state"
    if is_own:
        yield state, "name"
    yield state, "codec"
    for owner in (state, state["key"]):
        yield from ((owner, name) for name in ("key", "values", "unknown") if owner.get(name, ()) == DEFAULTS[name])


def _window(window: dict[str, Any], kinds: set[str]) -> Iterator[tuple[dict[str, Any], str]]:
    yield from ((window, name) for name in ("delay_ms", "late", "flush_ms") if window.get(name) == DEFAULTS[name])
    if window["kind"] == "range" and window["slide_ms"] == window["range_ms"]:
        yield window, "slide_ms"
    if window.get("time") == "ingest" and kinds <= {"tcp", "generator"}:
        yield window, "time"


def completed(document: Any) -> str:
    data = json.dumps(document, ensure_ascii=False).encode("utf-8")
    return canonical_text(complete(data, "/srv/app", "1.2.3").document)


@pytest.mark.parametrize("name", GOLDEN)
def test_all_that_may_be_left_out_is_added(name: str) -> None:
    document = whole(name)
    expected = canonical_text(document)
    places = list(omissible(document))
    for owner, key in places:
        owner.pop(key, None)
    assert len(places) > 12
    assert completed(document) == expected


@given(st.data())
def test_any_of_it_may_be_left_out(data: st.DataObject) -> None:
    document = whole(data.draw(st.sampled_from(GOLDEN)))
    expected = canonical_text(document)
    places = list(omissible(document))
    for at in data.draw(st.sets(st.integers(0, len(places) - 1))):
        places[at][0].pop(places[at][1], None)
    assert completed(document) == expected


def faults(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield what others are derived from, once all that may be left out is: the pointer, object and property."""
    yield "", document, "name"
    yield "/workers", document, "workers"
    if len(document["workers"]) > 1:
        yield from ((f"/workers/{at}", worker, "name") for at, worker in enumerate(document["workers"]))
    for number, pipeline in enumerate(document["pipelines"]):
        if len(document["pipelines"]) > 1:
            yield f"/pipelines/{number}", pipeline, "name"
        steps = ((f"/pipelines/{number}/steps/{at}", step) for at, step in enumerate(pipeline["steps"]))
        yield from ((pointer, step, name) for pointer, step in steps for name in ("name", "path"))


@given(data=st.data(), wrong=st.sampled_from([None, 5, []]))
def test_one_fault_is_one_finding(data: st.DataObject, wrong: Any) -> None:
    document = whole(data.draw(st.sampled_from(GOLDEN)))
    for owner, key in list(omissible(document)):
        owner.pop(key, None)
    pointer, owner, key = data.draw(st.sampled_from(list(faults(document))))
    if wrong is None:
        owner.pop(key, None)
    else:
        owner[key] = wrong
    try:
        completed(document)
    except RunError as error:
        places = {"", "/workers"} if key == "workers" else {pointer, f"{pointer}/{key}"}
        assert {finding.pointer for finding in error.diagnostics} <= places, error.diagnostics
    else:
        assert wrong is None and key in ("path", "name"), (pointer, key)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.text("a0/", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*DEFAULTS, "kind"]), inner, max_size=3)
    ),
    max_leaves=4,
)


@given(st.data())
def test_what_is_not_a_topology_is_a_finding(data: st.DataObject) -> None:
    document: Any = {"document": whole(data.draw(st.sampled_from(GOLDEN)))}
    owner, key = data.draw(st.sampled_from(list(_nodes(document))))
    owner[key] = data.draw(JSON)
    try:
        first = completed(document["document"])
    except RunError as error:
        assert all(finding.code[0] == "T" and finding.fix for finding in error.diagnostics)
    else:
        assert completed(json.loads(first)) == first


@pytest.mark.parametrize("kind", [{}, [], ["to"]])
def test_a_kind_that_is_no_text_is_a_finding(kind: Any) -> None:
    document = whole("word_count")
    document["pipelines"][0]["steps"][0]["kind"] = kind
    with pytest.raises(RunError, match="/pipelines/0/steps/0"):
        completed(document)


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _nodes(inner)


PARTIAL = {
    "$schema": "https://wallaroo-spark.dev/topology/1/topology.schema.json",
    "name": "Word Count in JavaScript",
    "workers": [
        {"language": "javascript", "command": ["node", "word_count.js"], "directory": ".", "sdk_version": "0.1.0"}
    ],
    "pipelines": [
        {
            "name": "words",
            "sources": [
                {"name": "lines", "kind": "tcp", "host": "127.0.0.1", "port": 7010, "framing": {"kind": "u32be"}}
            ],
            "steps": [
                {"name": "split into words", "kind": "computation_multi"},
                {
                    "name": "count",
                    "kind": "state_computation",
                    "state": {"name": "totals", "key": {"kind": "partition"}},
                },
            ],
            "sinks": [{"name": "counts", "kind": "tcp", "host": "127.0.0.1", "port": 7002}],
        }
    ],
}


def test_the_example_by_hand_is_completed_in_place(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(PARTIAL))
    example = json.loads((ROOT / "examples" / "javascript" / "topology.json").read_text("utf-8"))
    assert main(["complete", str(file)]) == 0
    printed = capfdbinary.readouterr().out
    assert json.loads(printed) == example
    assert main(["complete", str(file), "-o", str(file)]) == 0
    assert file.read_bytes() == printed
    assert main(["validate", str(file)]) == 0


def test_the_page_s_document_is_completed() -> None:
    page = (ROOT / "docs" / "languages.md").read_text("utf-8")
    document = json.loads(page.partition("```json\n")[2].partition("```")[0])
    example = json.loads((ROOT / "examples" / "javascript" / "topology.json").read_text("utf-8"))
    (pipeline,) = example["pipelines"]
    for part in (*pipeline["sources"], *pipeline["sinks"]):
        part["name"] = "words"
    assert json.loads(completed(document))["pipelines"] == example["pipelines"]


def test_a_document_that_was_changed_gets_its_new_hash(tmp_path: Path) -> None:
    changed = {**whole("reverse"), "name": "Other"}
    old = changed["workers"][0]["interface_hash"]
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(changed))
    assert main(["validate", str(file)]) == 3
    assert main(["complete", str(file), "--output", str(file)]) == 0
    assert main(["validate", str(file)]) == 0
    assert json.loads(file.read_text())["workers"][0]["interface_hash"] != old


def test_a_worker_runs_in_the_directory_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partial = whole("reverse")
    del partial["workers"][0]["directory"]
    (tmp_path / "topology.json").write_text(json.dumps(partial))
    monkeypatch.chdir(tmp_path.parent)
    assert main(["complete", f"{tmp_path.name}/topology.json", "-o", "whole.json"]) == 0
    assert json.loads(Path("whole.json").read_text())["workers"][0]["directory"] == str(tmp_path)


def test_what_cannot_be_added_has_a_place_and_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    partial = copy.deepcopy(PARTIAL)
    pipeline: Any = partial["pipelines"][0]  # type: ignore[index]
    pipeline["sources"].append({"kind": "generator"})
    del pipeline["steps"][1]["kind"]
    del pipeline["sinks"][0]["port"]
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(partial))
    assert main(["complete", str(file)]) == 3
    place = f"  at /pipelines/0/{{}}  (declared in {file})\n"
    assert capsys.readouterr().err == (
        f'T102 property "port" is missing\n{place.format("sinks/0")}'
        '  fix: add "port": TCP port; 0 lets the system choose one\n'
        f'T102 property "inputs" is missing\n{place.format("steps/0")}'
        '  fix: add "inputs": paths of the sources and steps whose messages come in, in document order of declaration\n'
        f'T102 property "kind" is missing\n{place.format("steps/1")}'
        '  fix: add "kind": computation, computation_multi: one, or any number of messages out; with `state_` in front '
        "also with state. key_by: the component gives the message's key. collect: all messages get one key. window: an "
        "aggregation over messages of one key. output: the messages that its input, a computation or window, emits to "
        "the output of that name\n"
    )


def test_no_workers_and_the_hash_of_a_library_are_findings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunError, match='property "workers" is missing'):
        completed({name: value for name, value in whole("reverse").items() if name != "workers"})
    mixed = whole("mixed_language")
    del mixed["workers"][1]["interface_hash"]
    with pytest.raises(RunError, match='property "interface_hash" is missing'):
        completed(mixed)


def test_stdin_is_read(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(PARTIAL).encode())))
    assert main(["complete", "-"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["pipelines"][0]["steps"][1]["inputs"] == ["0/steps/0"]


def test_an_output_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "topology.json").write_text(json.dumps(PARTIAL))
    assert main(["complete", str(tmp_path / "topology.json"), "-o", str(tmp_path)]) == 1
    said = f"R616 {tmp_path} cannot be written; Is a directory\n"
    assert capsys.readouterr().err == said + "  fix: correct the path or its permissions, or give another path\n"
