"""The packages ask for the Python that their code needs, neither less nor more."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "api" / "python", ROOT / "runtime")
CONNECTORS = ROOT / "api" / "connectors"  # need what the SDK needs
OLDEST = (3, 10)


def trees(package: Path) -> Iterator[ast.Module]:
    """Yield the package's modules, as the oldest Python reads them."""
    for path in sorted((package / "src").rglob("*.py")):
        yield ast.parse(path.read_bytes(), str(path), feature_version=OLDEST)


def needs_oldest(tree: ast.Module) -> bool:
    """Return whether a module has what came with 3.10: dataclasses with slots, `zip(strict=...)`, or `match`."""
    nodes = list(ast.walk(tree))
    keywords = {node.arg for node in nodes if isinstance(node, ast.keyword)}
    return bool(keywords & {"slots", "strict"}) or any(isinstance(node, ast.Match) for node in nodes)


def test_packages_ask_for_the_python_that_they_need() -> None:
    for package in (*PACKAGES, CONNECTORS):
        wanted = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
        assert wanted == ">=" + ".".join(map(str, OLDEST)), package
        assert package == CONNECTORS or any(map(needs_oldest, trees(package))), package


def test_tools_check_for_the_same_python() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert tool["ruff"]["target-version"] == "py{}{}".format(*OLDEST)
    assert tool["mypy"]["python_version"] == "{}.{}".format(*OLDEST)
    (said,) = re.findall(r"Python ≥ ([0-9.]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said == "{}.{}".format(*OLDEST)
