"""The feature table: every row names the tests that prove it, and the edits that switch the feature off.

    python tests/feature.py --write     writes the table of docs/wallaroo.md from tests/features.toml
    python tests/feature.py --off       all tests pass; with a feature switched off, its test fails
    python tests/feature.py --off merge ...   rows whose name holds one of the words

The edits are made in a copy of the tree, never in the tree itself.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from wallaroo_runtime.program.import_path import NESTED

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "features.toml"
PAGE = ROOT / "docs" / "wallaroo.md"
COLUMNS = {"python1": "Python 0.1-0.3", "python2": "Python 0.4-0.5", "python3": "Python 0.6", "go": "Go"}
TEST_S = 600.0
HEADING = "\n## Features\n\n"
INTRODUCTION = """\
Features by generation of Wallaroo's API, with their names here. "new": Wallaroo did not have the feature; "unreleased":
only its last version, which was never released, had it. The column Go is about
two APIs: Wallaroo's own, and package `stream` ("typed API"). A cell that names neither applies to both.
"""
OTHERS = {"new", "–"}  # cells of features that have no name in a generation


@dataclass(frozen=True)
class Proof:
    """A test of a feature, and what makes it fail.

    Attributes:
        test: `file.py::test` for pytest; `package#TestName` for go, the package relative to api/go.
        file: Where the feature is switched off.
        find: Text that occurs there once.
        replace: What switches it off.
    """

    test: str
    file: str
    find: str
    replace: str

    @property
    def name(self) -> str:
        """The test without its folder."""
        return self.test if "#" in self.test else self.test.rpartition("/")[2]

    def wrong(self, root: Path) -> str:
        """Return what is wrong with the proof, or nothing; the test passes with the feature on."""
        file = root / self.file
        before = file.read_text(encoding="utf-8")
        if before.count(self.find) != 1:
            return f"{self.file} has the text {before.count(self.find)} times"
        file.write_text(before.replace(self.find, self.replace), encoding="utf-8")
        try:
            return "the test passes with the feature off" if passed([self], root) else ""
        finally:
            file.write_text(before, encoding="utf-8")


@dataclass(frozen=True)
class Feature:
    """One row.

    Attributes:
        name: What people call it.
        offered: For each column of the table what is offered here: "yes", "no", or a few words.
        proofs: At least one.
    """

    name: str
    offered: dict[str, str]
    proofs: tuple[Proof, ...]


def features() -> list[Feature]:
    """Return the rows, in the order of the table."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["feature"]
    return [
        Feature(row["name"], {column: row[column] for column in COLUMNS}, tuple(Proof(**each) for each in row["proof"]))
        for row in rows
    ]


def commands(proofs: Sequence[Proof], root: Path) -> list[list[str]]:
    """Return the commands that run tests in a copy of the tree: one of pytest, one of go for each module."""
    found = []
    python = list(dict.fromkeys(proof.test for proof in proofs if "#" not in proof.test))
    if python:
        found.append([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *python])
    modules: dict[str, list[tuple[str, str]]] = {}
    for proof in proofs:
        package, is_go, name = proof.test.partition("#")
        if is_go:
            module = next((each for each in NESTED if package == each or package.startswith(f"{each}/")), "")
            modules.setdefault(module, []).append((os.path.relpath(package, module or "."), name))
    for module, tests in modules.items():
        packages = sorted({"./" + package for package, _ in tests})
        names = "|".join(sorted({name for _, name in tests}))
        command = ["go", "-C", str(root / "api" / "go" / module), "test", "-vet=off", "-count=1", "-v"]
        found.append([*command, *packages, "-run", f"^({names})$"])
    return found


def passed(proofs: Sequence[Proof], root: Path) -> bool:
    """Run tests in a copy of the tree.

    Raises:
        SystemExit: There is no such test, or it could not be run.
    """
    # Sources are edited within a second: Python must not take bytecode of the edit for that of the original.
    path = os.pathsep.join(
        str(root / part) for part in ("api/python/src", "api/connectors/src", "runtime/src", "tests")
    )
    # WALLAROO_LONG_UNITS: proofs are not drawn, and the copy of the tree has no commit.
    given = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "WALLAROO_LONG_UNITS": "0"}
    is_good = True
    for command in commands(proofs, root):
        done = subprocess.run(command, cwd=root, env=given, capture_output=True, text=True, timeout=TEST_S, check=False)
        if done.returncode not in (0, 1) or "no tests to run" in done.stdout or "[build failed]" in done.stdout:
            msg = f"{command[-1]} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            raise SystemExit(msg)
        if done.returncode and len(proofs) > 1:
            print(done.stdout[-4000:])
        is_good = is_good and not done.returncode
    return is_good


def page(rows: Sequence[Feature]) -> str:
    """Return the page with the table at its end: rows that have a name in a generation before 0.6."""
    rows = [row for row in rows if not {row.offered["python1"], row.offered["python2"]} <= OTHERS]
    above = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    lines = [INTRODUCTION, "| feature | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += ["| " + " | ".join([row.name, *(row.offered[column] for column in COLUMNS)]) + " |" for row in rows]
    return above + HEADING + "\n".join(lines) + "\n"


BUILT = ("realtime.jar", "sources.sha256")  # of the operators in Java


def copy_tree(root: Path) -> None:
    """Copy what git knows, or would add, and the operators that are built."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name, follow_symlinks=False)
    java = root / "runtime" / "build" / "java"
    java.mkdir(parents=True)
    for name in BUILT:
        shutil.copy2(ROOT / "runtime" / "build" / "java" / name, java)


def faults(row: Feature, root: Path) -> Iterator[str]:
    """Switch a feature off in a copy of the tree, one place after the other; yield what is wrong with its proofs."""
    for proof in row.proofs:
        reason = proof.wrong(root)
        print(f"{'WRONG' if reason else 'ok   '} {row.name}: {proof.name}", flush=True)
        if reason:
            yield f"{row.name}: {proof.test}: {reason}"


def check(words: Sequence[str]) -> list[str]:
    """Switch features off, one after the other; return what is wrong."""
    rows = [row for row in features() if not words or any(word in row.name for word in words)]
    if unknown := [word for word in words if not any(word in row.name for row in rows)]:
        return [f"no row's name holds {word!r}" for word in unknown]
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "tree"
        copy_tree(root)
        if not passed([proof for row in rows for proof in row.proofs], root):
            return ["a test fails with all features on"]
        return [fault for row in rows for fault in faults(row, root)]


def main() -> int:
    parser = argparse.ArgumentParser(description="The feature table.")
    parser.add_argument("--write", action="store_true", help="write the table of docs/wallaroo.md")
    parser.add_argument("--off", nargs="*", metavar="WORD", help="switch features off and see their tests fail")
    options = parser.parse_args()
    if options.write:
        PAGE.write_text(page(features()), encoding="utf-8")
    found = check(options.off) if options.off is not None else []
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
