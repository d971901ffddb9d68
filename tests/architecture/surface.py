"""The public surface of the SDKs, and the rule that what programs call or make themselves has an example."""

import ast
import doctest
import importlib
import inspect
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = ("wallaroo", "wallaroo.connector", "wallaroo.experimental", "wallaroo.goka", "wallaroo.testing")
GO_PACKAGES = (".", "./application", "./stream", "./wallarootest", "./worker")
# Classes whose objects others make, or that say nothing without a subclass.
GIVEN = ("Application", "BaseWrapped", "experimental.BaseIter")
USE = Path(__file__).resolve().parent / "use.go"


def surface() -> dict[str, object]:
    """Return what is public, by name; names of a package in `wallaroo` begin with that package's."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        prefix = f"{package}.".removeprefix("wallaroo.")
        found.update({prefix + name: getattr(module, name) for name in module.__all__})
    return found


def example_violations(public: Mapping[str, object]) -> Iterator[str]:
    """Yield functions and entry classes whose docstring has no example, or one that does not use the name."""
    for name, value in public.items():
        if name in GIVEN or (isinstance(value, type) and issubclass(value, Exception)):
            continue
        examples = doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")
        if not examples:
            yield f"{name}: its docstring has no example"
        elif name.rpartition(".")[2] not in used("".join(example.source for example in examples)):
            yield f"{name}: the example of its docstring does not use it"


def used(text: str) -> set[str]:
    """Return the names and attributes that a program reads; those that it imports or defines alone do not count."""
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}


def go_example_violations(module: Path, packages: tuple[str, ...]) -> list[str]:
    """Return functions and types of Go packages in no example of their package, and examples that are not run."""
    command = ["go", "run", str(USE), *packages]
    return subprocess.run(command, cwd=module, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
