"""The tutorial's examples on real Kafka and Spark: what is to be typed does what is shown."""

import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.kafka import free_port
from support.page import Block
from support.run import READY, wait_until
from support.tutorial import EXAMPLES, Terminal, at, example_blocks

pytestmark = [pytest.mark.jvm, pytest.mark.kafka]
NAMES, WAIT_S = ("user_status", "topics"), 400.0
PORTS = ("9092", "9096", "9097")
WAITS = {"wallaroo broker": "broker serves at", "wallaroo run": READY, "go run": READY}


def typed(example: str, language: str, ports: dict[str, str]) -> list[Block]:
    """Return what is typed and shown in terminals, in the order of the page."""
    return [
        Block(block.language, block.title, block.tab, at(block.text, ports))
        for block in example_blocks(example)
        if block.title.startswith("Terminal") and block.tab in ("", language)
    ]


@pytest.mark.parametrize("language", ["Python", pytest.param("Go", marks=pytest.mark.long)])
@pytest.mark.parametrize("example", NAMES)
def test_the_commands_show_what_is_printed(example: str, language: str, tmp_path: Path) -> None:
    ports = {port: str(free_port()) for port in PORTS}
    folder = shutil.copytree(EXAMPLES / example, tmp_path / example, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.iterdir():
        file.write_text(at(file.read_text(encoding="utf-8"), ports), encoding="utf-8")
    started: dict[str, Terminal] = {}
    commands = {block.title: block.text for block in typed(example, language, ports)}
    with ExitStack() as ends:
        for title, text in commands.items():
            if title.endswith(" shows"):
                name = title.removesuffix(" shows")
                shows(started[name], commands[name], text)
                continue
            started[title] = terminal = Terminal(text, folder, tmp_path / f"{title}.txt")
            ends.callback(terminal.end)
            terminal.wait_for(next((said for command, said in WAITS.items() if command in text), ""))
    assert any(title.endswith(" shows") for title in commands)


def shows(terminal: Terminal, commands: str, text: str) -> None:
    """Wait until a terminal shows a text. What ends without it, a question to a service, is asked again."""

    def holds() -> bool:
        if terminal.process.poll() is not None and commands.startswith("curl") and terminal.said() != text:
            done = subprocess.run(["bash", "-ec", commands], capture_output=True, text=True, timeout=300, check=False)
            terminal.output.write_text(done.stdout, encoding="utf-8")
        return terminal.said() == text

    wait_until(holds, lambda: f"{text}; it says {terminal.said()}", WAIT_S, every=0.5)
