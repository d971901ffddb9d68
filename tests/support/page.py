"""Pages of docs/ as tests read them: their blocks of programs, of commands and of output."""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
FENCE = re.compile(r'( *)```(\w*)(?: title="([^"]*)")?')
TAB = re.compile(r'=== "(.*)"')
PRINTS = re.compile(r" *<!-- (\S+/\S+) -->")


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        language: What follows the fence, "" for none.
        title: Its title, "" for none.
        tab: The tab that it belongs to, "" for none.
        text: Its lines, without the indentation of a tab.
        file: The file that it prints, named in a comment above the fence; "" for none.
    """

    language: str
    title: str
    tab: str
    text: str
    file: str = ""


def blocks(page: Path) -> list[Block]:
    """Return the blocks of code of a page, in their order."""
    return blocks_of(page.read_text(encoding="utf-8"))


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of code of a page's text, in their order."""
    found, tab, above = [], "", ""
    lines = iter(text.splitlines())
    for line in lines:
        if line and not line.startswith(" "):
            tab = match[1] if (match := TAB.match(line)) else ""
        if not (fence := FENCE.fullmatch(line)):
            above = line
            continue
        indent, language, title = fence[1], fence[2], fence[3] or ""
        body = []
        for inner in lines:
            if inner.strip() == "```":
                break
            body.append(inner.removeprefix(indent))
        prints = PRINTS.fullmatch(above)
        found.append(Block(language, title, tab, "\n".join(body) + "\n", prints[1] if prints else ""))
        above = ""
    return found
