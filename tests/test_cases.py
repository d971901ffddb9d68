"""Every case folder: both languages emit the golden topology, which plans as the golden plan says."""

import json
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from support.case import NAMES, PROGRAMS, Case, without_symbols
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.explain import explain
from wallaroo_runtime.topology.canonical import canonical_text
from wallaroo_runtime.topology.load import load

EMITTED: dict[tuple[str, str], str] = {}

pytestmark = pytest.mark.slow


def wallaroo(*arguments: object) -> str:
    """Run a command in this process; returns what it prints."""
    with redirect_stdout(TextIOWrapper(BytesIO(), "utf-8")) as out:
        code = main([*map(str, arguments)])
        out.flush()
    assert code == 0, arguments
    return out.buffer.getvalue().decode()


def emitted(case: Case, language: str) -> str:
    """Return what a program emits; each is asked once."""
    key = (case.name, language)
    if key not in EMITTED:
        EMITTED[key] = wallaroo("emit", case.app(language), *case.arguments())
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


@pytest.mark.parametrize(("name", "language"), PROGRAMS)
def test_topology_is_golden_byte_for_byte(name: str, language: str, rewrites_golden: bool) -> None:
    case = Case(name)
    text = without_workers(emitted(case, language))
    golden = case.golden("topology.json", language)
    if rewrites_golden and language in (*case.translated[:1], *set(case.languages) - {*case.translated}):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "language"), PROGRAMS)
def test_emitted_document_is_canonical(name: str, language: str) -> None:
    text = emitted(Case(name), language)
    assert canonical_text(json.loads(text)) == text
    languages = {worker["name"]: worker["language"] for worker in json.loads(text)["workers"]}
    assert languages.pop("main") == language
    assert language not in languages.values()


def test_interface_hash_is_the_same_in_every_language(case: Case) -> None:
    documents = [json.loads(emitted(case, language)) for language in case.translated]
    hashes = {tuple(worker["interface_hash"] for worker in document["workers"]) for document in documents}
    assert len(hashes) == 1


OWN = [(name, language) for name, language in PROGRAMS if language not in Case(name).translated[1:]]


@pytest.mark.parametrize(("name", "language"), OWN)
def test_plan_is_golden(name: str, language: str, rewrites_golden: bool) -> None:
    case = Case(name)
    golden = case.golden("plan.txt", language)
    plan = plan_of(emitted(case, language))
    if rewrites_golden:
        golden.write_text(plan, encoding="utf-8")
    assert plan == golden.read_text(encoding="utf-8")


TRANSLATED = [
    (name, language) for name in NAMES if len(Case(name).translated) > 1 for language in Case(name).translated
]


@pytest.mark.parametrize(("name", "language"), TRANSLATED)
def test_case_plans_with_the_other_language_s_workers(name: str, language: str) -> None:
    case = Case(name)
    (other,) = set(case.translated) - {language}
    document = json.loads(emitted(case, language)) | {"workers": json.loads(emitted(case, other))["workers"]}
    plan = plan_of(json.dumps(document))
    assert plan == plan_of(emitted(case, other))
    assert without_symbols(plan) == without_symbols((case.folder / "plan.txt").read_text(encoding="utf-8"))


def test_classes_emit_what_decorators_emit() -> None:
    case = Case("word_count")
    text = wallaroo("emit", case.folder / "app_classes.py", *case.arguments())
    assert without_workers(text) == without_workers(emitted(case, "python"))


@pytest.mark.parametrize("command", ["validate", "explain", "graph"])
def test_commands_read_an_emitted_document(case: Case, command: str, tmp_path: Path) -> None:
    text = emitted(case, case.languages[0])
    file = tmp_path / "topology.json"
    file.write_text(text, encoding="utf-8")
    printed = wallaroo(command, file)
    if command == "graph":
        assert "steps" in printed
    if command == "explain":
        assert printed.startswith(f'application "{json.loads(text)["name"]}"')


def test_case_folders_are_complete(case: Case) -> None:
    present = {file.name for file in case.folder.iterdir()}
    wanted = {"README.md", "topology.json", "plan.txt", "case.toml"} | {
        item["file"] for item in case.setting("input", [])
    }
    assert wanted <= present and case.languages
    own = {f"expected.{language}.txt" for language in case.languages}
    assert {"expected.txt"} <= present or own <= present
