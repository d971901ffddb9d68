"""Prose and contracts: named files exist, copies are equal, every error code is tested."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from architecture.source import ROOT, hand_written, parsed

PACKAGES = "runtime/src/wallaroo_runtime"
ROOT_DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
DOCUMENTS = (
    *ROOT_DOCUMENTS,
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
    "tests/conformance/README.md",
    "topology-schema/SPECIFICATION.md",
)
FOLDERS = ("", "topology-schema", PACKAGES, "api/python/src/wallaroo", "tests", "tests/conformance")
NAME = re.compile(r"`([\w./-]+\.(?:py|go|md|json|proto|toml|txt))`")
FOLDER = re.compile(r"`((?:api|docs|runtime|tests|topology-schema)/[\w./-]*)`")
# Files that a run or a user makes; the prose speaks of them without a folder.
MADE = {
    "ended.json",
    "failure.json",
    "application.json",
    "gateway.json",
    "records.json",
    "attachment.json",
    "egress.json",
    "driver.json",
    "word_count.py",
    "bank.py",
    "test_bank.py",
    "clicks.py",
    "lines.py",
    "topology.json",
    "emitted.json",
}
TEST_FILES = (
    "tests/**/*.py",
    "api/python/tests/**/*.py",
    "api/connectors/tests/**/*.py",
    "runtime/tests/**/*.py",
    "api/go/**/*_test.go",
)
VECTORS = "topology-schema/vectors/topologies/invalid/*.json"

CODE = re.compile(r"\b[TPWCRI][0-9]{3}\b")


def layer_names(root: Path) -> Iterator[tuple[str, str]]:
    """Yield package and file of the table of the runtime's layers."""
    for line in (root / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        if len(cells) == 5 and re.fullmatch(r" `\w+` ", cells[1]):
            yield from ((cells[1].strip(" `"), name) for name in NAME.findall(cells[2]))


def path_violations(root: Path) -> Iterator[str]:
    """Yield names of files in the prose that do not exist."""
    for package, name in layer_names(root):
        if not (root / PACKAGES / package / name).is_file():
            yield f"ARCHITECTURE.md: {package}/{name} does not exist"
    of_layers = {name for _, name in layer_names(root)}
    for document in DOCUMENTS:
        text = (root / document).read_text(encoding="utf-8")
        for name in {*NAME.findall(text), *FOLDER.findall(text)}:
            places = [root / folder / name for folder in (*FOLDERS, str(Path(document).parent))]
            if name in MADE or name in of_layers or any(place.exists() for place in places):
                continue
            yield f"{document}: {name} does not exist"


def codes(root: Path) -> list[str]:
    """Return the codes of the catalogue, in its order."""
    catalogue = json.loads((root / "topology-schema/errors.json").read_text(encoding="utf-8"))
    return [entry["code"] for entry in catalogue["errors"]]


def catalogue_violations(root: Path) -> Iterator[str]:
    """Yield codes that stand twice, or out of order."""
    found = codes(root)
    yield from (f"errors.json: {code} stands twice" for code in sorted({c for c in found if found.count(c) > 1}))
    order = {letter: position for position, letter in enumerate("TPWCRI")}
    if sorted(found, key=lambda code: (order[code[0]], code)) != found:
        yield "errors.json: codes are not in order"


def untested_codes(root: Path, folders: tuple[str, ...] = TEST_FILES) -> list[str]:
    """Return the codes that no test file names."""
    files = [path for pattern in folders for path in root.glob(pattern) if "architecture" not in path.parts]
    text = "".join(path.read_text(encoding="utf-8") for path in [*files, *root.glob(VECTORS)])
    named = set(CODE.findall(text))
    return [code for code in codes(root) if code not in named]


def kinds(root: Path) -> set[str]:
    """Return the kinds of the catalogue."""
    catalogue = json.loads((root / "topology-schema/errors.json").read_text(encoding="utf-8"))
    return {entry["kind"] for entry in catalogue["errors"] if "kind" in entry}


def code_comparisons(root: Path) -> Iterator[str]:
    """Yield places at which the runtime compares the code of an error, where it is to look at its kind."""
    for path in sorted((root / PACKAGES).rglob("*.py")):
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            parts = ast.walk(node) if isinstance(node, ast.Compare) else ()
            if any(isinstance(each, ast.Constant) and CODE.fullmatch(str(each.value)) for each in parts):
                yield f"{path.relative_to(root)}:{node.lineno}: compares a code; compare its kind"


PRODUCT = ("api/", "runtime/src/", "runtime/java/src/main/")


def unused_codes(root: Path) -> list[str]:
    """Return the codes that no part of the product can report."""
    names = [name for name in hand_written(root, ".py", ".go", ".java") if name.startswith(PRODUCT)]
    text = "".join(
        (root / name).read_text(encoding="utf-8") for name in names if "/tests/" not in name and "_test." not in name
    )
    named = set(CODE.findall(text))
    return [code for code in codes(root) if code not in named]
