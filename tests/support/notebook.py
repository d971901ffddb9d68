"""Runs pieces of Python one after the other in one namespace, as a notebook does, in a process of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from support.run import with_archive

# Prints a JSON array with the outputs of each piece, in the form of notebooks, after all else that is printed.
PROGRAM = """
import ast, contextlib, io, json, sys

names, outputs = {"__name__": "__main__"}, []
for number, text in enumerate(json.load(sys.stdin)):
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = last and eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    printed = said.getvalue().splitlines(keepends=True)
    outputs.append([{"name": "stdout", "output_type": "stream", "text": printed}] if printed else [])
    if hasattr(value, "_repr_svg_"):
        picture = {"image/svg+xml": [value._repr_svg_()]}
        outputs[-1].append({"data": picture, "metadata": {}, "output_type": "display_data"})
print(json.dumps(outputs))
"""


def outputs_of(pieces: Iterable[str], folder: Path) -> list[list[dict[str, Any]]]:
    """Run pieces of Python in a folder, and return the outputs of each."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, input=json.dumps(list(pieces)),
        env={**os.environ, **with_archive(folder.with_name("logs")), "TZ": "UTC"},
        capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def cells_of(notebook: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """Return the cells of a notebook that run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
