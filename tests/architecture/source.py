"""The repository's files as the rules see them."""

import ast
import functools
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("/_proto/", "/workerpb/")
PYTHON_SDK = "api/python/src"
CONNECTORS = "api/connectors/src"
RUNTIME = "runtime/src"
JAVA = "runtime/java/src/main/java/org/wallaroo/spark"


@dataclass(frozen=True)
class Import:
    """One import of a module, with its place."""

    file: str
    line: int
    module: str


@functools.cache
def parsed(text: str) -> ast.Module:
    """Return the syntax tree of a program's text; several rules look at the same one."""
    return ast.parse(text)


def blocks_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a node, and the parts of it that hold statements; expressions hold no block."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = getattr(node, name, ())
        yield from inner if isinstance(inner, list) else ()


@functools.cache
def statements(text: str) -> tuple[ast.AST, ...]:
    """Return the module of a program's text, and what `blocks_in` yields for it: a tenth of the nodes of its tree."""
    found: list[ast.AST] = [parsed(text)]
    for node in found:  # which grows
        found += blocks_in(node)
    return tuple(found)


def files(root: Path) -> list[str]:
    """Return the files below `root`, in a checkout without those that git ignores."""
    if not (root / ".git").exists():
        found = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        return [name for name in found if not name.startswith((".venv/", "build/"))]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root, capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    return [name for name in listed.split("\0") if name and (root / name).is_file()]


def hand_written(root: Path, *endings: str) -> list[str]:
    """Return the source files below `root` that people write."""
    return sorted(
        name for name in files(root) if name.endswith(endings) and not any(part in f"/{name}" for part in GENERATED)
    )


def module_of(file: str, top: str) -> str:
    """Return the dotted name of a Python file below a source directory."""
    parts = Path(file).relative_to(top).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield line, level of relativity and name of each import in a program's text."""
    for node in statements(text):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, 0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from package import x` may name a module.
            base = f"{node.module}." if node.module else ""
            yield from ((node.lineno, node.level, base + alias.name) for alias in node.names)


def imports(file: str, text: str) -> Iterator[Import]:
    """Yield every import of a program's text, relative ones resolved; `file` begins with its source directory."""
    top = next(top for top in (PYTHON_SDK, CONNECTORS, RUNTIME) if file.startswith(top + "/"))
    module = module_of(file, top)
    package = module if file.endswith("__init__.py") else module.rpartition(".")[0]
    parts = package.split(".")
    for line, level, name in imported(text):
        base = parts[: len(parts) - level + 1] if level else []
        yield Import(file, line, ".".join([*base, name]))


def texts(top: str) -> Iterator[tuple[str, str]]:
    """Yield the hand-written Python files of a source directory, each with its text."""
    for file in hand_written(ROOT, ".py"):
        if file.startswith(top + "/"):
            yield file, (ROOT / file).read_text(encoding="utf-8")
