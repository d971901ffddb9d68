"""The words of prose: documents, docstrings, comments and messages use the field's terms.

Each rule is a pattern that has no meaning of its own in this project, and what to write instead.
"""

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from architecture.source import hand_written, parsed, statements

BANNED = {
    r"(?<!left )behind": "after, past, downstream of",
    r"anew": "again",
    r"any more(?! than)": "no longer",
    r"elsewhere": "remote, otherwise, in another place",
    r"beside": "next to, besides, local",
    r"guilty|innocent|blamed|to blame": "poison message, suspect",
    r"(give|gives|gave|given|giving)( it| them)? out": "emit",
    r"(go|goes|going|went) out": "is emitted, is sent",
    r"at work": "in flight",
    r"(is|are|was|were|be|been|being) told(?! apart)": "is reported, gets",
    r"tells": "reports, returns, states",
    r"stands(?! for| still)": "is, lies, is stored",
    r"that which|whoever": "a noun",
}  # fmt: skip
ANY = re.compile("|".join(f"\\b(?:{pattern})\\b" for pattern in BANNED))  # of text in lower case: that is twice as fast
RULES = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead) for pattern, instead in BANNED.items()]
# Where two lines of one text meet, in a program.
JOINT = re.compile(r"""["'][\s\\]+[rf]{0,2}["']""")
GO_TEXT = re.compile(r'//.*|"(?:[^"\\\n]|\\.)*"')
PROTO_TEXT = re.compile(r"//.*")
PRODUCT = ("api/python/src/", "api/connectors/src/", "runtime/src/", "api/go/")


def python_text(text: str, has_messages: bool) -> Iterator[tuple[int, str]]:
    """Yield line and text of comments and docstrings, and of all other strings where they may be messages."""
    if any(ANY.search(line.lower()) for line in text.splitlines() if "#" in line):  # cutting into tokens is slow
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(parsed(text)) if has_messages else statements(text):
        if has_messages and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def prose(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of what people read in a file."""
    if name.endswith(".py"):
        yield from python_text(text, name.startswith(PRODUCT) and "/tests/" not in name)
    elif name.endswith("errors.json"):
        for number, entry in enumerate(json.loads(text)["errors"]):
            yield number + 4, f"{entry['message']}; {entry['fix']}"
    else:
        pattern = {".go": GO_TEXT, ".proto": PROTO_TEXT}.get(Path(name).suffix)
        for number, line in enumerate(text.splitlines(), 1):
            yield number, " ".join(pattern.findall(line)) if pattern else line


def word_violations(root: Path) -> Iterator[str]:
    """Yield banned words of the prose, with their place."""
    for name in hand_written(root, ".md", ".py", ".go", ".proto", "topology-schema/errors.json"):
        if name != "tests/architecture/prose.py":
            yield from found_in(name, (root / name).read_text(encoding="utf-8"))


def found_in(name: str, text: str) -> Iterator[str]:
    """Yield the banned words of one file."""
    if not any(ANY.search(each.lower()) for each in (text, JOINT.sub("", text))):  # to parse programs is slow
        return
    for number, part in prose(name, text):
        for pattern, instead in RULES if ANY.search(part.lower()) else ():
            for found in pattern.finditer(part):
                line = number + part.count("\n", 0, found.start())
                yield f'{name}:{line}: "{found[0]}"; write: {instead}'
