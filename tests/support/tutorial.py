"""The examples of the tutorial, in a terminal."""

import os
import signal
import subprocess
from pathlib import Path

from support.page import DOCS, blocks
from support.run import TESTS, WALLAROO, wait_until

EXAMPLES = TESTS.parent / "examples" / "tutorial"


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


def commands(page: str) -> list[str]:
    """Return what a page says to type that ends by itself, for the program in Python."""
    return [
        block.text
        for block in blocks(DOCS / "tutorial" / f"{page}.md")
        if block.language == "sh" and not block.title and block.tab != "Go"
    ]
