"""Lets each `assert A == B` of this package say what A and B were when they differ; plain Python says nothing of them."""

import ast
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any

SHOWN_CHARACTERS = 400
SIDES = "__sides__"


def sides(source: str, got: object, expected: object, told: object = "") -> str:
    """Return the text of an assertion that failed."""
    said = f"{told}: " if told else ""
    return f"{said}{source}: got {_cut(repr(got))}, expected {_cut(repr(expected))}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(text)} characters)"


class Rewriter(ast.NodeTransformer):
    """Writes the message of each assertion that compares two things."""

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Bind both sides to names, each computed once, and show them in the message."""
        test = node.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return node
        source = ast.unparse(test)
        left = ast.NamedExpr(ast.Name("__got", ast.Store()), test.left)
        right = ast.NamedExpr(ast.Name("__expected", ast.Store()), test.comparators[0])
        said = [ast.Constant(source), ast.Name("__got", ast.Load()), ast.Name("__expected", ast.Load())]
        said += [node.msg] if node.msg is not None else []
        made = ast.Assert(
            ast.Compare(left, test.ops, [right]), ast.Call(ast.Name(SIDES, ast.Load()), args=said, keywords=[])
        )
        return ast.fix_missing_locations(ast.copy_location(made, node))


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module of this package with the rewriter, always from its source."""

    def path_stats(self, path: Any) -> Any:
        """Keep Python from using or writing the byte code of the plain module."""
        raise OSError

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        """Return the code of a module whose assertions show both sides."""
        tree = Rewriter().visit(ast.parse(data))
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)

    def exec_module(self, module: ModuleType) -> None:
        """Give the module what its assertions call."""
        vars(module)[SIDES] = sides
        super().exec_module(module)


class Finder:
    """Finds the modules of this package."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Return a spec with our loader; None for other modules."""
        if not name.startswith("conformance.") or path is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            return spec
        return importlib.util.spec_from_file_location(name, spec.origin, loader=Loader(name, spec.origin))


def install() -> None:
    """Use the loader for all modules of this package from now on."""
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
