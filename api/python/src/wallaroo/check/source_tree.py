"""Parses the source of a program's classes and functions."""

import ast
import inspect
import linecache
import textwrap
import warnings
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

_TREES: WeakKeyDictionary[type, ast.Module] = WeakKeyDictionary()


def source_tree(owner: Any) -> ast.Module:
    """Return the parsed source of a class or function. Suppress warnings, which the compiler has shown before.

    Raises:
        OSError: There is no source, e.g. for a class made at run time.
        TypeError: The class or function was not written in Python.
        SyntaxError: The source does not belong to the object.

    Example:
        >>> type(source_tree(source_tree).body[0]).__name__
        'FunctionDef'
    """
    if isinstance(owner, type):
        if owner not in _TREES:
            _TREES[owner] = ast.Module([_class_tree(owner)], [])
        return _TREES[owner]
    return _parsed(textwrap.dedent(inspect.getsource(owner)))


def _class_tree(cls: type) -> ast.ClassDef:
    """Return the syntax tree of a class. `inspect` would parse the whole module for each class."""
    file = inspect.getsourcefile(cls)
    module = inspect.getmodule(cls, file)
    source = "".join(linecache.getlines(file, vars(module) if module else None)) if file else ""
    definitions = _classes(source).get(cls.__qualname__)
    if definitions is None:
        raise OSError("could not find class definition")  # noqa: EM101
    first_line = getattr(cls, "__firstlineno__", None)  # exists since Python 3.13
    return next((each for each in definitions if _first_line(each) == first_line), definitions[0])


def _first_line(definition: ast.ClassDef) -> int:
    return min([definition.lineno, *(each.lineno for each in definition.decorator_list)])


@lru_cache(maxsize=1)
def _classes(source: str) -> dict[str, list[ast.ClassDef]]:
    """Return the definitions of a module's classes by qualified name."""
    classes: dict[str, list[ast.ClassDef]] = {}
    waiting: list[tuple[str, ast.AST]] = [("", _parsed(source))]
    while waiting:
        outer, node = waiting.pop()
        name = f"{outer}{getattr(node, 'name', '')}"
        if isinstance(node, ast.ClassDef):
            classes.setdefault(name, []).append(node)
            outer = f"{name}."
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            outer = f"{name}.<locals>."
        waiting += [(outer, child) for child in reversed(list(ast.iter_child_nodes(node)))]
    return classes


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
