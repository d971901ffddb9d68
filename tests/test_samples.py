"""The samples of the pages: each compiles, names what exists, and is run where that needs no Spark and no Kafka."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import wallaroo
from support.page import DOCS, PRINTS, Block, blocks
from wallaroo import goka
from wallaroo.testing import run

ROOT = DOCS.parent
PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / each for each in ("README.md", "api/python/README.md"))]
PATH = re.compile(r"(?:#|//) (\S+/\S+\.\w+)\n")
MODULES = {"wallaroo": wallaroo, "goka": goka}  # as samples call them without an import
GO_PACKAGES = {
    "stream": "stream", "worker": "worker", "wallarootest": "wallarootest", "goka": "goka", "codec": "goka/codec",
}  # fmt: skip


def samples(language: str) -> list[tuple[str, Block]]:
    """Return the blocks of a language, with their page; those that print a file are left out."""
    found = ((page, block) for page in PAGES for block in blocks(page) if block.language == language)
    return [(page.name, block) for page, block in found if not block.file]


def sample(page: str, text: str) -> str:
    """Return the block of Python of a page that has a text."""
    (found,) = [block.text for name, block in samples("python") if name == page and text in block.text]
    return found


def lacking(text: str) -> Iterator[str]:
    """Yield the names that a sample of Python takes from the SDK or the runtime, and that they do not have."""
    modules: dict[str, Any] = dict(MODULES)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wallaroo"):
            package = importlib.import_module(node.module or "")
            yield from (f"{node.module}.{name}" for name in names if not hasattr(package, name))
        elif isinstance(node, ast.Import):
            modules |= {name: importlib.import_module(name) for name in names if name.startswith("wallaroo")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and not hasattr(module, node.attr):
                yield f"{node.value.id}.{node.attr}"


@pytest.mark.parametrize(
    "text", [pytest.param(block.text, id=f"{page}-{at}") for at, (page, block) in enumerate(samples("python"))]
)
def test_python_compiles_and_names_what_exists(text: str) -> None:
    assert list(lacking(text)) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [("import wallaroo\nwallaroo.sauce()", "wallaroo.sauce"), ("from wallaroo import goker", "wallaroo.goker")],
)
def test_planted_name_of_python(text: str, name: str) -> None:
    assert list(lacking(text)) == [name]


def unknown_of_go(text: str) -> set[str]:
    """Return the names that a sample of Go takes from packages of the SDK, and that they do not declare."""
    code = re.sub(r"//.*", "", text)
    return {
        f"{package}.{name}"
        for package, name in re.findall(rf"\b({'|'.join(GO_PACKAGES)})\.([A-Z]\w*)", code)
        if not declared(package, name)
    }


def declared(package: str, name: str) -> bool:
    declares = re.compile(rf"^(?:(?:func|type|var|const) |\t){name}\b", re.MULTILINE)
    files = (ROOT / "api" / "go" / GO_PACKAGES[package]).glob("*.go")
    return any(declares.search(file.read_text(encoding="utf-8")) for file in files)


def test_go_names_what_exists() -> None:
    found = samples("go")
    assert len(found) > 10
    assert {(page, name) for page, block in found for name in unknown_of_go(block.text)} == set()
    assert unknown_of_go("stream.KeyBuy(x) // stream.Nothing") == {"stream.KeyBuy"}


@pytest.mark.slow
def test_go_has_the_form_of_gofmt() -> None:
    for page, block in samples("go"):
        if PATH.match(block.text):
            continue  # compiled in its file
        ways = ("%s", "package p\n%s", "package p\nfunc _() {\n%s}\n")
        done = [
            subprocess.run(["gofmt", "-e"], input=way % block.text, capture_output=True, text=True, check=False)
            for way in ways
        ]
        assert any(each.returncode == 0 for each in done), (page, done[-1].stderr)


def test_parts_of_programs_are_those_of_their_files() -> None:
    parts = [(path[1], text) for language in ("python", "go") for path, text in with_path(language)]
    assert len(parts) >= 11
    for file, part in parts:
        code = "\n".join(line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines())
        for piece in part.split("\n...\n"):
            assert "\n".join(line.strip() for line in piece.strip().splitlines()) in code, file


def with_files(text: str) -> str:
    """Return a page's text with each file that it prints as the file is now."""
    lines, above = [], ""
    rest = iter(text.split("\n"))
    for line in rest:
        lines.append(line)
        if (prints := PRINTS.fullmatch(above)) and line.lstrip().startswith("```"):
            indent = line[: -len(line.lstrip())]
            file = (ROOT / prints[1]).read_text(encoding="utf-8").rstrip("\n")
            lines += [indent + each if each else "" for each in file.split("\n")]
            lines.append(next(each for each in rest if each == f"{indent}```"))
        above = line
    return "\n".join(lines)


def test_printed_files_are_as_they_are(rewrites_golden: bool) -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if rewrites_golden:
            page.write_text(with_files(text), encoding="utf-8")
        else:
            wanted = "`pytest tests/test_samples.py -k printed_files --golden` writes it"
            assert text == with_files(text), f"{page.name}: {wanted}"


def test_planted_print_of_another_file() -> None:
    page = "<!-- tests/feature.py -->\n```python\nold\n```\nafter"
    first = (ROOT / "tests" / "feature.py").read_text(encoding="utf-8").partition("\n")[0]
    assert with_files(page).split("\n")[2] == first and with_files(page).endswith("\n```\nafter")
    assert with_files(with_files(page)) == with_files(page)


def with_path(language: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the samples whose first line names a file, and what follows it."""
    for _, block in samples(language):
        if path := PATH.match(block.text):
            yield path, block.text[path.end() :]


def test_the_group_of_goka_passes_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    clicks = ModuleType("clicks")
    exec(sample("goka-python.md", "define_group"), vars(clicks))
    monkeypatch.setitem(sys.modules, "clicks", clicks)
    names: dict[str, Any] = {}
    exec(sample("goka-python.md", "def test_clicks"), names)
    names["test_clicks_are_counted"]()


VISITED = """
import wallaroo


class Count:
    def __init__(self):
        self.number = 0


{}

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()


@wallaroo.key_extractor
def word(text):
    return text


@wallaroo.encoder
def encode(text):
    return text + ";"


def application_setup(args):
    source = wallaroo.source("words", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode))
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
    return wallaroo.build_application("Words", source.key_by(word).to(count).to_sink(sink))
"""


def test_the_visitor_deletes_and_resets(tmp_path: Path) -> None:
    (tmp_path / "visited.py").write_text(VISITED.format(sample("state.md", "visitor")), encoding="utf-8")
    with run(str(tmp_path / "visited.py")) as app:
        app.send([b"a", b"b", b"b"])
        app.clear()
        assert app.visit("reset", b"2") == 2
        assert app.output() == [b"b starts again;"]
        assert {key: state.number for key, state in app.states("count").items()} == {"b": 0}


def test_sources_and_sinks_of_kafka_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "x")
    names: dict[str, Any] = {}
    exec(sample("kafka.md", "import KafkaRecord"), names)
    exec(sample("kafka.md", "KAFKA_PASSWORD"), names)
    ends = wallaroo.source("users", names["users"]).merge(wallaroo.source("clicks", names["clicks"]))
    application = wallaroo.build_application("Topics", ends.to_sink(names["counts"]))
    assert len(list(application.nodes())) == 3
    wallaroo.KafkaSourceConfig("clicks", names["brokers"], "Warn", None, content="record", options=names["secured"])
