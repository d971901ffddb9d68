"""Every case folder: both languages emit the golden topology, which plans as the golden plan says."""

import json
from typing import Any

import pytest

from case import LANGUAGES, NAMES, Case, without_symbols
from run import wallaroo
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.explain import explain
from wallaroo_runtime.topology.canonical import canonical_text
from wallaroo_runtime.topology.load import load

ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
EMITTED: dict[tuple[str, str], str] = {}

pytestmark = pytest.mark.slow


def emit(app: object) -> str:
    done = wallaroo("emit", app, *ADDRESSES)
    assert done.returncode == 0, done.stderr
    return done.stdout


def emitted(case: Case, language: str) -> str:
    """Return what a program emits; each is asked once."""
    key = (case.name, language)
    if key not in EMITTED:
        EMITTED[key] = emit(case.app(language))
    return EMITTED[key]


def without_workers(text: str) -> str:
    document: dict[str, Any] = json.loads(text)
    del document["workers"]
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def plan_of(text: str) -> str:
    topology = load(text.encode())
    return explain(compile_topology(topology, shuffle_partitions=2), topology)


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


@pytest.mark.parametrize("language", LANGUAGES)
def test_topology_is_golden_byte_for_byte(case: Case, language: str, rewrites_golden: bool) -> None:
    text = without_workers(emitted(case, language))
    golden = case.folder / "topology.json"
    if rewrites_golden and language == "python":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_emitted_document_is_canonical(case: Case, language: str) -> None:
    text = emitted(case, language)
    assert canonical_text(json.loads(text)) == text
    assert [worker["language"] for worker in json.loads(text)["workers"]] == [language]


def test_interface_hash_is_the_same_in_every_language(case: Case) -> None:
    hashes = {json.loads(emitted(case, language))["workers"][0]["interface_hash"] for language in LANGUAGES}
    assert len(hashes) == 1


def test_plan_is_golden(case: Case, rewrites_golden: bool) -> None:
    golden = case.folder / "plan.txt"
    plan = plan_of(emitted(case, "python"))
    if rewrites_golden:
        golden.write_text(plan, encoding="utf-8")
    assert plan == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "other"), [LANGUAGES, LANGUAGES[::-1]])
def test_case_plans_with_the_other_language_s_workers(case: Case, language: str, other: str) -> None:
    document = json.loads(emitted(case, language)) | {"workers": json.loads(emitted(case, other))["workers"]}
    plan = plan_of(json.dumps(document))
    assert plan == plan_of(emitted(case, other))
    assert without_symbols(plan) == without_symbols((case.folder / "plan.txt").read_text(encoding="utf-8"))


def test_classes_emit_what_decorators_emit() -> None:
    case = Case("word_count")
    assert without_workers(emit(case.folder / "app_classes.py")) == without_workers(emitted(case, "python"))


@pytest.mark.parametrize("command", ["validate", "explain", "graph"])
def test_commands_read_an_emitted_document(case: Case, command: str, tmp_path: Any) -> None:
    file = tmp_path / "topology.json"
    file.write_text(emitted(case, "python"), encoding="utf-8")
    done = wallaroo(command, file)
    assert done.returncode == 0, done.stderr
    if command == "graph":
        assert "0/steps/0" in done.stdout or "steps" in done.stdout
    if command == "explain":
        assert done.stdout.startswith(f'application "{json.loads(emitted(case, "python"))["name"]}"')


def test_case_folders_are_complete(case: Case) -> None:
    present = {file.name for file in case.folder.iterdir()}
    wanted = {"README.md", "app.py", "app.go", "input.txt", "topology.json", "plan.txt", "case.toml"}
    assert wanted <= present
    assert {"expected.txt"} <= present or {"expected.python.txt", "expected.go.txt"} <= present
