"""Parses the source of a program's classes and functions."""

import ast
import inspect
import textwrap
import warnings
from typing import Any


def source_tree(owner: Any) -> ast.Module:
    """Return the source of a class or function, parsed; the compiler has shown its warnings already.

    Raises:
        OSError: There is no source, such as for a class made at run time.
        TypeError: It was not written in Python.
        SyntaxError: The source is not that of the object.

    Example:
        >>> type(source_tree(source_tree).body[0]).__name__
        'FunctionDef'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(textwrap.dedent(inspect.getsource(owner)))
