"""The budget: sizes, nesting, names, and what an __init__.py may hold."""

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from architecture.source import blocks_in, hand_written, parsed, statements

FILE_LINES, MEDIAN_LINES, FUNCTION_LINES, NESTING = 400, 150, 50, 3
FORBIDDEN = {"util", "utils", "helper", "helpers", "common", "manager", "base", "misc"}
# file: why it may be longer.
LONG_FILES: dict[str, str] = {}
# file:function: why it may be nested deeper.
DEEP_FUNCTIONS: dict[str, str] = {}
# In parts, so that this file has none of them.
SKIP = re.compile(
    "|".join(
        (
            r"pytest\.(importor)?" + r"skip\(",
            "mark" + r"\.(skip|xfail)",
            r"\bt\." + "Skip",
            "@" + "Disabled",
            "assume" + "True",
        )
    )
)
# file: why what it does not run is no secret.
SKIPPING = {"tests/conftest.py": "long tests whose time is over are listed, and come first in the next run"}
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.AsyncFor, ast.AsyncWith)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def programs(root: Path) -> Iterator[tuple[str, str]]:
    for file in hand_written(root, ".py"):
        yield file, (root / file).read_text(encoding="utf-8")


def lengths(root: Path) -> dict[str, int]:
    """Return the number of lines of each hand-written file."""
    return {file: len((root / file).read_bytes().splitlines()) for file in hand_written(root, ".py", ".go")}


def length_violations(root: Path) -> Iterator[str]:
    """Yield files that are too long."""
    found = lengths(root)
    for file, lines in found.items():
        if lines > FILE_LINES and file not in LONG_FILES:
            yield f"{file}: {lines} lines; at most {FILE_LINES}"
    for file in LONG_FILES:
        if found.get(file, 0) <= FILE_LINES:
            yield f"{file}: listed as long, but has {found.get(file, 0)} lines"


def median_violations(root: Path) -> Iterator[str]:
    """Yield the median of the files' lengths when it is too large."""
    median = statistics.median(lengths(root).values())
    if median > MEDIAN_LINES:
        yield f"the median file has {median:g} lines; at most {MEDIAN_LINES}"


def depth(node: ast.AST, level: int = 0) -> int:
    """Return how deep blocks stand in each other; `elif` counts as its `if`."""
    deepest = level
    for child in blocks_in(node):
        if isinstance(child, FUNCTIONS):
            continue
        inner = level + isinstance(child, BLOCKS)
        if isinstance(child, ast.If) and isinstance(node, ast.If) and child in node.orelse:
            inner = level
        deepest = max(deepest, depth(child, inner))
    return deepest


def nesting_violations(root: Path) -> Iterator[str]:
    """Yield functions that are nested too deeply."""
    for file, text in programs(root):
        for node in statements(text):
            if isinstance(node, FUNCTIONS) and depth(node) > NESTING and f"{file}:{node.name}" not in DEEP_FUNCTIONS:
                yield f"{file}:{node.lineno}: {node.name} is nested {depth(node)} deep; at most {NESTING}"


def function_lengths(root: Path) -> dict[str, int]:
    """Return the number of lines of each function, Python and Go."""
    found = {}
    for file, text in programs(root):
        for node in statements(text):
            if isinstance(node, FUNCTIONS) and node.end_lineno:
                found[f"{file}:{node.lineno} {node.name}"] = node.end_lineno - node.lineno + 1
    for file in hand_written(root, ".go"):
        start, name = 0, ""
        for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1):
            if match := re.match(r"func (?:\([^)]*\) )?(\w+)", line):
                start, name = number, match[1]
            if start and line == "}":
                found[f"{file}:{start} {name}"] = number - start + 1
                start = 0
    return found


def function_violations(root: Path) -> Iterator[str]:
    """Yield the longest functions when more than 5 in 100 are too long."""
    found = sorted(function_lengths(root).items(), key=lambda item: item[1])
    if found and found[int(len(found) * 0.95)][1] > FUNCTION_LINES:
        yield from (
            f"{name}: {lines} lines; at most {FUNCTION_LINES}" for name, lines in found if lines > FUNCTION_LINES
        )


def name_violations(root: Path) -> Iterator[str]:
    """Yield files and folders whose names say nothing."""
    for file in hand_written(root, ".py", ".go"):
        for part in Path(file).with_suffix("").parts:
            if part.lower() in FORBIDDEN or set(part.lower().split("_")) & (FORBIDDEN - {"base", "common"}):
                yield f"{file}: {part} says nothing; take a noun"


def init_violations(root: Path) -> Iterator[str]:
    """Yield what an __init__.py holds besides docstring, imports and __all__."""
    for file, text in programs(root):
        if not file.endswith("/__init__.py"):
            continue
        for position, node in enumerate(parsed(text).body):
            is_text = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_all = isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]
            if not (is_text or is_all or isinstance(node, ast.Import | ast.ImportFrom)):
                yield f"{file}:{node.lineno}: only a docstring, imports and __all__ belong here"


def skip_violations(root: Path) -> Iterator[str]:
    """Yield where a test leaves itself out: what it needs, the set-up installs, or the test fails and says so."""
    for file in hand_written(root, ".py", ".go", ".java", ".js"):
        for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1):
            if file not in SKIPPING and SKIP.search(line):
                yield f"{file}:{number}: a test is left out in silence"
