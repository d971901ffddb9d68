"""Where errors are raised: the values of their texts, and their remedies."""

import ast
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from architecture.document import CODE, PRODUCT
from architecture.source import hand_written, parsed

PART = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
CALL = re.compile(r'(?:\bdiagnostic\.Of|OperatorFailure\.of|\breturn Of)\("([A-Z]\d{3})"')
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`|[()]')
NAME = re.compile(r'"(\w+)",')
MAKERS = {"of", "add", "finding", "find", "_finding"}
ADDED = {"finding": {"path"}, "find": {"path"}}  # what the function itself gives


class Raise(NamedTuple):
    """A call that makes an error."""

    place: str
    code: str
    names: frozenset[str]
    is_open: bool
    fix: str


@functools.cache
def raises(root: Path) -> tuple[Raise, ...]:
    """Return the calls of the product that make an error of the catalogue."""
    return tuple(_raises(root))


def _raises(root: Path) -> Iterator[Raise]:
    for name in hand_written(root, ".py", ".go", ".java"):
        if not name.startswith(PRODUCT) or "/tests/" in name or "_test." in name:
            continue
        text = (root / name).read_text(encoding="utf-8")
        yield from _python(name, text) if name.endswith(".py") else _other(name, text)


def _python(name: str, text: str) -> Iterator[Raise]:
    for call in ast.walk(parsed(text)):
        if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Constant):
            continue
        function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        code = call.args[0].value
        owner = getattr(getattr(call.func, "value", None), "id", "")
        if function == "finding" and owner != "index":  # of an error that has its own values
            continue
        if function not in MAKERS or not isinstance(code, str) or not CODE.fullmatch(code):
            continue
        names = frozenset({each.arg for each in call.keywords if each.arg} | ADDED.get(function, set()))
        fixes = [each.value for each in call.keywords if each.arg == "fix"]
        fix = str(fixes[0].value) if fixes and isinstance(fixes[0], ast.Constant) else ""
        yield Raise(f"{name}:{call.lineno}", code, names, any(each.arg is None for each in call.keywords), fix)


def _other(name: str, text: str) -> Iterator[Raise]:
    for found in CALL.finditer(text):
        depth, end = 1, found.end()
        for sign in TOKEN.finditer(text, end):
            depth += {"(": 1, ")": -1}.get(sign[0], 0)
            if not depth:
                end = sign.start()
                break
        values = text[found.end() : end]
        line = text.count("\n", 0, found.start()) + 1
        yield Raise(f"{name}:{line}", found[1], frozenset(NAME.findall(values)), "..." in values, "")


def catalogue(root: Path) -> dict[str, dict[str, str]]:
    """Return the entries of the catalogue by their codes."""
    text = (root / "topology-schema" / "errors.json").read_text(encoding="utf-8")
    return {entry["code"]: entry for entry in json.loads(text)["errors"]}


def missing_values(root: Path) -> Iterator[str]:
    """Yield the calls that leave a part of a text unfilled. `Diagnostic.of` knows the interpreter."""
    entries = catalogue(root)
    for place, code, names, is_open, _ in raises(root):
        entry = entries.get(code)
        if entry is None:
            yield f"{place}: {code} is not in the catalogue"
        elif not is_open and (missing := set(PART.findall(entry["message"] + entry["fix"])) - names - {"python"}):
            yield f"{place}: {code} without {', '.join(sorted(missing))}"


def remedies(root: Path) -> list[str]:
    """Return the remedy of each code; of one that its causes have, those that stand in the calls."""
    fixes: dict[str, set[str]] = {}
    for each in raises(root):
        fixes.setdefault(each.code, set()).add(each.fix)
    lines = []
    for code, entry in catalogue(root).items():
        lines.append(f"{code} {entry['fix']}")
        lines += [f"     {fix}" for fix in sorted(fixes.get(code, set()) - {""}) if entry["fix"] == "{fix}"]
    return lines
