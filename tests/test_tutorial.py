"""The tutorial: its programs pass their tests, and its commands do in a shell what the pages show."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import wallaroo
from support.kafka import free_port
from support.page import DOCS, Block, blocks
from support.run import READY
from support.tutorial import EXAMPLES, Terminal, at, commands, example_blocks, examples
from wallaroo.emit.topology import topology
from wallaroo.testing import run
from wallaroo_runtime.program.init import init

NAMES = sorted(examples())
LIVE = ("word_count", "fraud", "averages")
PORTS = ("7002", "7003", "7010")


def python_tests() -> Iterator[tuple[Path, str]]:
    for file in sorted(EXAMPLES.glob("*/test_app.py")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("def test_"):
                yield file, line.removeprefix("def ").partition("(")[0]


@pytest.mark.parametrize(("file", "name"), [pytest.param(*each, id=each[1]) for each in python_tests()])
def test_a_python_program_passes_its_test(file: Path, name: str) -> None:
    spec = importlib.util.spec_from_file_location(f"tutorial_{file.parent.name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    getattr(module, name)()


def test_the_four_files_of_each_example_are_printed() -> None:
    assert sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()) == NAMES
    for name in NAMES:
        files = {block.title: block.file for block in example_blocks(name)}
        for file in ("app.py", "test_app.py", "main.go", "main_test.go"):
            assert files[file] == f"examples/tutorial/{name}/{file}"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the examples, at ports of its own."""
    folder = tmp_path_factory.mktemp("tutorial") / "tutorial"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    ports = {port: str(free_port()) for port in PORTS}
    for file in folder.glob("*/*.*"):
        file.write_text(at(file.read_text(encoding="utf-8"), ports), encoding="utf-8")
    (folder / "ports").write_text(" ".join(ports.values()), encoding="utf-8")
    return folder


def printed(language: str, text: str) -> str:
    """Return the program, or its part, on sources and sinks that has a text."""
    (block,) = [each for each in blocks(DOCS / "sources.md") if each.language == language and text in each.text]
    return block.text


def test_the_source_and_sink_of_the_page_on_files_are_taken() -> None:
    names: dict[str, Any] = {"decode": wallaroo.decoder(4, ">I")(bytes.decode), "encode": wallaroo.encoder(str.encode)}
    exec(printed("python", "SparkSourceConfig"), names)
    ends = wallaroo.source("orders", names["source"]).to_sink(names["sink"])
    (pipeline,) = topology(wallaroo.build_application("Files", ends), "/data", "app.py", [])["pipelines"]
    paths = [end["options"]["path"] for end in (*pipeline["sources"], *pipeline["sinks"])]
    assert paths == ["/data/orders", "/data/totals"]


def test_the_lines_of_the_page_on_tcp_are_messages(tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(printed("python", "line_decoder"), encoding="utf-8")
    with run(tmp_path / "lines.py") as app:
        app.send([b'{"price": 2, "amount": 3}', b"", b"no JSON"])
        assert app.output() == [b'{"total": 6}\n']
        assert [letter.step for letter in app.dead_letters] == ["orders"]


GO_FILES = """package main

import (
	"testing"

	"wallarooapi/stream"
)

func TestFiles(t *testing.T) {
	decode := stream.Value(stream.Text.Decode)
	encode := func(text string) (stream.Record, error) { return stream.Record{Value: []byte(text)}, nil }
	%s
	app := stream.New("Files")
	stream.From(app, "orders", source).To(sink)
	if text := app.ToJson(); len(text) == 0 {
		t.Fatal(text)
	}
}
"""


GO_VISITS = """package main

import (
	"context"
	"fmt"
	"testing"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

type Count struct{ Number int }

func count(_ context.Context, word string, state *Count) (string, error) {
	state.Number++
	return fmt.Sprint(word, state.Number), nil
}

func TestVisits(t *testing.T) {
	app := stream.New("Words")
	source := stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode)
	words := stream.KeyBy(stream.From(app, "words", source), "word", func(word string) string { return word })
	%s
	counts.To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	test := wallarootest.New(t, app)
	test.Send("words", "a", "a")
	if keys := test.Visit("reset", nil); keys != 1 {
		t.Fatal(keys)
	}
	wallarootest.Equal(t, test.Lines("127.0.0.1:7002"), []string{"a1", "a2", "a starts again"})
	wallarootest.Equal(t, wallarootest.State[Count](test, "count", "a"), Count{})
}
"""


@pytest.mark.slow
def test_the_go_programs_pass_their_tests(copy: Path) -> None:
    (copy / "howto").mkdir()
    visits = next(block.text for block in blocks(DOCS / "state.md") if block.text.startswith("counts :="))
    (copy / "howto" / "files_test.go").write_text(GO_FILES % printed("go", "SparkSource"), encoding="utf-8")
    (copy / "howto" / "visits_test.go").write_text(GO_VISITS % visits, encoding="utf-8")
    init(copy)
    done = subprocess.run(["go", "test", "./..."], cwd=copy, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok") == len(NAMES) + 1


def terminals(example: str, ports: dict[str, str]) -> list[Block]:
    """Return the blocks that are typed for a first look at an example in Python."""
    return [
        Block(block.language, block.title, block.tab, at(block.text, ports))
        for block in example_blocks(example)
        if block.title.startswith("Terminal") and block.tab != "Go"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("example", LIVE)
def test_the_first_look_shows_what_is_printed(example: str, copy: Path, tmp_path: Path) -> None:
    ports = dict(zip(PORTS, (copy / "ports").read_text(encoding="utf-8").split(), strict=True))
    started: dict[str, Terminal] = {}
    with ExitStack() as ends:
        for block in terminals(example, ports):
            if block.title.endswith(" shows"):
                terminal = started[block.title.removesuffix(" shows")]
                wanted = block.text.splitlines()
                terminal.wait_for_lines(len(wanted))
                assert sorted(terminal.said().splitlines()) == sorted(wanted)
                continue
            terminal = Terminal(block.text, copy / example, tmp_path / f"{block.title}.txt")
            started[block.title] = terminal
            ends.callback(terminal.end)
            if "wallaroo run" in block.text:
                terminal.wait_for(READY)
            elif "wallaroo send" in block.text:
                assert terminal.process.wait(60) == 0, terminal.said()
    assert any(title.endswith(" shows") for title in (block.title for block in terminals(example, ports)))


@pytest.mark.slow
@pytest.mark.parametrize("app", ["app.py", "."])
def test_records_are_read_from_the_terminal(app: str, copy: Path, tmp_path: Path) -> None:
    look, shown = (block for block in example_blocks("topics") if block.title.startswith("First look"))
    text = look.text.replace("app.py", app)
    terminal = Terminal(text, copy / "topics", tmp_path / "look.txt")
    assert terminal.process.wait(120) == 0 and shown.text in terminal.said(), terminal.said()


@pytest.mark.slow
def test_the_readme_has_a_result_in_a_minute(tmp_path: Path) -> None:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    (typed,) = re.findall(r"^(echo .* --engine memory)$", page, re.MULTILINE)
    command = typed.replace(".venv/bin/", "").replace("examples/tutorial", str(EXAMPLES))
    (printed,) = re.findall(r"prints `(totals [^`]*)`", page)
    terminal = Terminal(command, tmp_path, tmp_path / "said.txt")
    assert terminal.process.wait(60) == 0 and f"{printed}\n" in terminal.said(), terminal.said()


@pytest.mark.slow
def test_commands_that_end_succeed(copy: Path, tmp_path: Path) -> None:
    typed = commands("word_count")
    assert all(commands(name) == typed[:1] for name in NAMES if name != "word_count")
    terminal = Terminal("".join(typed), copy / "word_count", tmp_path / "said.txt")
    assert terminal.process.wait(120) == 0, terminal.said()
    assert "2 passed" in terminal.said() and "is correct" in terminal.said() and "2 stages" in terminal.said()
