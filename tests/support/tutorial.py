"""The examples of the tutorial, in a terminal."""

import os
import re
import signal
import subprocess
from pathlib import Path

from support.page import DOCS, Block, blocks_of
from support.run import TESTS, WALLAROO, wait_until

EXAMPLES = TESTS.parent / "examples" / "tutorial"
# A page has one example or several: each begins with the heading before that of its program.
BEGIN = re.compile(r"^(?=#+ .*\n(?:(?!#).*\n)*#+ The program$)", re.MULTILINE)


def examples() -> dict[str, str]:
    """Return what the tutorial says of each example, by its name."""
    texts = (page.read_text(encoding="utf-8") for page in sorted((DOCS / "tutorial").glob("*.md")))
    found: dict[str, str] = {}
    for text in (part for page in texts for part in BEGIN.split(page)[1:]):
        (name,) = set(re.findall(r"examples/tutorial/(\w+)/", text))
        assert name not in found, f"{name} stands twice"
        found[name] = text
    return found


def example_blocks(name: str) -> list[Block]:
    """Return the blocks of code of an example, in their order."""
    return blocks_of(examples()[name])


def at(text: str, ports: dict[str, str]) -> str:
    """Return a program's or a page's text with other ports."""
    for port, other in ports.items():
        text = text.replace(port, other)
    return text


class Terminal:
    """A block of commands in a shell of its own, with what it has printed."""

    def __init__(self, commands: str, folder: Path, output: Path) -> None:
        self.output = output
        path = f"{WALLAROO.parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(folder / "state"), "PYTHONUNBUFFERED": "1"}
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                ["bash", "-ec", commands], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.said() or self.process.poll() is not None, lambda: f"{text}: {self.said()}")
        assert text in self.said(), self.said()

    def wait_for_lines(self, count: int) -> None:
        wait_until(lambda: self.said().count("\n") >= count, self.said)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(60)


def commands(example: str) -> list[str]:
    """Return what the tutorial says to type for an example that ends by itself, for the program in Python."""
    return [
        block.text
        for block in example_blocks(example)
        if block.language == "sh" and not block.title and block.tab != "Go"
    ]
