"""The documentation site: no dead links, commands that exist, pages that say what their sources say."""

import argparse
import doctest
import importlib
import json
import posixpath
import re
import shlex
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support.page import DOCS, blocks
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo_runtime.cli.example import EXAMPLES
from wallaroo_runtime.cli.main import COMMANDS, command_parser, module_of
from wallaroo_runtime.cli.option import MODULE

ROOT = DOCS.parent
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
SHELL = ("", "sh", "text", "console")
COMMAND = re.compile(r"(?:^|[|&] )\$? ?(?:\.venv/bin/)?wallaroo ([a-z].*?)(?= \| | &&|$)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def module(name: str) -> ModuleType:
    """Return a module of docs/site."""
    sys.path.insert(0, str(DOCS / "site"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


LINKS, REFERENCE = module("link"), module("reference")
CODES = {entry["code"] for entry in REFERENCE.catalogue()}
GENERATED = {*REFERENCE.NAMES, *LINKS.ROOT_PAGES.values()}


def slug(heading: str) -> str:
    """Return the anchor of a heading, as Markdown's table of contents makes it."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(page: str) -> set[str]:
    """Return the anchors of a page."""
    text = re.sub(r"```.*?```", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def is_dead(page: str, target: str) -> bool:
    """Return whether a link of a page leads nowhere."""
    if target.startswith(("http://", "https://", "mailto:")):
        return False
    path, _, anchor = target.partition("#")
    name = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    if name == LINKS.ERRORS:
        return bool(anchor) and anchor.upper() not in CODES
    if name in GENERATED:
        return False
    if not name.startswith("..") and name in PAGES:
        return bool(anchor) and anchor not in anchors(name)
    return not (DOCS / name).is_file() or name.startswith("..")


def dead_links() -> Iterator[str]:
    """Yield the links of the pages, and of the documents with a page, that lead nowhere on the site."""
    texts = {page: (DOCS / page).read_text(encoding="utf-8") for page in PAGES}
    for name, page in LINKS.ROOT_PAGES.items():
        texts[page] = LINKS.of_root((ROOT / name).read_text(encoding="utf-8"), page)
    for page, text in texts.items():
        for target in LINK.findall(
            re.sub(r"```.*?```|`[^`\n]*`", "", LINKS.with_links(text, page, CODES), flags=re.DOTALL)
        ):
            if is_dead(page, target):
                yield f"{page}: {target}"


def test_no_link_is_dead() -> None:
    assert "\n".join(dead_links()) == ""


@pytest.mark.parametrize("target", ["gone.md", "kafka.md#gone", "../README.md", "reference/errors.md#r999", "#gone"])
def test_planted_dead_link(target: str) -> None:
    assert is_dead("debug.md", target)
    assert not is_dead("debug.md", "kafka.md#topics")


def test_links_of_the_pages_are_files() -> None:
    """A page is read in a clone, too, where no page is generated."""
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in LINK.findall(text):
            path = target.partition("#")[0]
            assert "://" in target or not path or (DOCS / page).parent.joinpath(path).is_file(), f"{page}: {target}"


def test_links_of_the_readme_are_files() -> None:
    for target in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).is_file(), target


def named(part: object) -> Iterator[str]:
    """Yield the pages that a part of the menu names."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from named(inner)


def test_the_menu_names_every_page_once() -> None:
    menu = list(named(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    assert len(menu) == len(set(menu))
    assert set(menu) <= {*PAGES, *GENERATED}
    assert set(menu) >= GENERATED  # a page of docs/ that it does not name is put at its end


def typed() -> Iterator[tuple[str, list[str]]]:
    """Yield the commands `wallaroo ...` of the pages and of the README, with their page."""
    pages = [*map(DOCS.joinpath, PAGES), ROOT / "README.md"]
    shells = ((page, block) for page in pages for block in blocks(page) if block.language in SHELL)
    for page, line in ((page, line) for page, block in shells for line in block.text.splitlines()):
        for command in COMMAND.findall(line):
            yield page.name, shlex.split(command.partition("#")[0].removesuffix("&"))


def mentioned() -> Iterator[tuple[str, list[str]]]:
    """Yield the commands that sentences name, whole or in part."""
    for page in [*map(DOCS.joinpath, PAGES), ROOT / "README.md"]:
        for command in re.findall(r"`wallaroo ([a-z][^`]*)`", page.read_text(encoding="utf-8")):
            yield page.name, shlex.split(command.replace("'", ""))


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options of a command and of the commands below it."""
    found = {name for action in parser._actions for name in action.option_strings}
    return found.union(*(options(below) for _, below in REFERENCE.below(parser)))


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command."""
    return dict(command_parser()[1])


def unknown(words: list[str], known: dict[str, argparse.ArgumentParser]) -> set[str]:
    """Return what the command `wallaroo WORDS` has that does not exist."""
    if words[0] not in known:
        return {words[0]}
    given = {word.partition("=")[0] for word in words[1:] if re.match("-+[a-z]", word)}
    return given - options(known[words[0]]) - {MODULE}


def refusal(words: list[str], known: dict[str, argparse.ArgumentParser]) -> str:
    """Return why `wallaroo WORDS` would be refused before it does anything; nothing if it would not."""
    if lacks := unknown(words, known):  # those of `run` would be the application's
        return " ".join(lacks)
    split = getattr(module_of(words[0]), "split_arguments", None)
    try:
        _, extras = known[words[0]].parse_known_args(split(words[1:]).own if split else words[1:])
    except DiagnosticError as error:
        return str(error)
    return " ".join(extras)


def test_the_commands_of_the_pages_parse() -> None:
    found, known = list(typed()), parsers()
    assert {words[0] for _, words in found} >= {"run", "validate", "explain", "send", "receive", "submit", "topics"}
    assert [(page, words, said) for page, words in found if (said := refusal(words, known))] == []


def test_each_help_ends_with_an_example_that_parses() -> None:
    known = parsers()
    every = [each for parser in known.values() for each in (parser, *(below for _, below in REFERENCE.below(parser)))]
    assert {parser.prog for parser in every} == EXAMPLES.keys()
    for parser in every:
        assert parser.format_help().endswith(f"\nexample: {EXAMPLES[parser.prog]}\n")
        words = shlex.split(EXAMPLES[parser.prog].removeprefix("source <(").removesuffix(")").partition(" >")[0])
        assert " ".join(words).startswith(parser.prog) and refusal(words[1:], known) == ""


def test_the_commands_in_sentences_exist() -> None:
    found, known = list(mentioned()), parsers()
    assert len(found) > 150
    assert [(page, words) for page, words in found if unknown(words, known)] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("rum app.py", "rum"),
        ("run app.py --checkpont x", "--checkpont"),
        ("topics tail t --to-ent", "--to-ent"),
        ("state get app.py", "the following arguments are required: NAME, KEY"),
        ("dead-letters shaw x", "shaw is not a value of"),
    ],
)
def test_planted_command(line: str, wrong: str) -> None:
    assert wrong in refusal(line.split(), parsers())
    assert refusal(["topics", "tail", "t", "--to-end", "-n", "3"], parsers()) == ""


@pytest.mark.parametrize("name", ["link", "reference"])
def test_examples_of_the_site_s_own_code(name: str) -> None:
    result = doctest.testmod(module(name))
    assert result.attempted > 0
    assert result.failed == 0


PARTS = ["R714", "`R714`", "R999", "`docs/kafka.md`", "[R714](x)", "`app.py`", "text", "# ", "```", "\n", "    "]


@given(st.lists(st.sampled_from(PARTS), max_size=30).map(" ".join))
def test_links_are_all_that_is_added(text: str) -> None:
    made = LINKS.with_links(text, "internals/worker.md", CODES)
    back = re.sub(r"\[(R714)\]\(\.\./reference/errors\.md#r714\)", r"\1", made)
    back = re.sub(r"\[(`docs/kafka\.md`)\]\(\.\./kafka\.md\)", r"\1", back)
    assert back == text


def test_the_catalogue_s_page_has_every_code_with_its_remedy() -> None:
    page = REFERENCE.errors()
    assert re.findall(r"^### (\w+) .* \{#(\w+)\}$", page, re.MULTILINE) == [
        (entry["code"], entry["code"].lower()) for entry in REFERENCE.catalogue()
    ]
    assert page.count("\nRemedy: ") == len(CODES)
    assert page.count("\n- ") == sum(len(entry.get("causes", ())) for entry in REFERENCE.catalogue())


def test_the_topology_s_page_has_every_field() -> None:
    page = REFERENCE.topology()
    schema = json.loads((ROOT / "topology-schema" / "topology.schema.json").read_text(encoding="utf-8"))
    for name, definition in schema["$defs"].items():
        assert f"\n## {name}\n" in page
        for field in definition.get("properties", {}):
            assert f"| `{field}`" in page


def test_the_commands_page_has_every_command() -> None:
    page = REFERENCE.commands()
    for command in COMMANDS:
        assert f"\n## {command}\n" in page
    assert "\n### state rescale\n" in page


def test_the_pages_of_python_have_every_public_name() -> None:
    for name, package in REFERENCE.PYTHON.items():
        page = REFERENCE.PAGES[f"reference/python/{name}.md"]()
        assert sorted(re.findall(r"^::: (\S+)$", page, re.MULTILINE)) == sorted(
            f"{package}.{public}" for public in importlib.import_module(package).__all__
        )


@pytest.mark.slow
def test_the_pages_of_go_have_the_public_surface() -> None:
    pages = REFERENCE.go()
    surface = (ROOT / "tests" / "architecture" / "surface.go.txt").read_text(encoding="utf-8").splitlines()
    assert set(pages) == {REFERENCE.go_page(package) for package in REFERENCE.GO}
    for line in surface:
        package, kind, name = re.match(r"(\S+) (func|type) (?:\([^)]*\) )?(\w+)", line).groups()  # type: ignore[union-attr]
        page = pages[REFERENCE.go_page({".": "wallarooapi"}.get(package, f"wallarooapi/{package.removeprefix('./')}"))]
        assert re.search(rf"`{kind} (?:\([^)]*\) )?{name}` \{{#", page), line


def test_nothing_is_fetched_from_another_host() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    assert config["theme"]["font"] is False
    assert config["extra"]["polyfills"] == ["iframe-worker.js"]  # the plugin's own would be fetched
    for part in (text, *((DOCS / name).read_text(encoding="utf-8") for name in ("site.css", "iframe-worker.js"))):
        assert not re.search(r"https?://", part)
