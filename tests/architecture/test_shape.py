"""Sizes, nesting and names; each rule sees a planted violation."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from architecture import shape
from architecture.source import ROOT

Rule = Callable[[Path], Iterator[str]]
RULES = [
    shape.length_violations,
    shape.median_violations,
    shape.nesting_violations,
    shape.function_violations,
    shape.name_violations,
    shape.init_violations,
    shape.skip_violations,
]
DEEP = "def f():\n  if a:\n    for b in c:\n      with d:\n        if e:\n          pass\n"
ELIF = (
    "def f():\n  if a:\n    pass\n  elif b:\n    pass\n  elif c:\n    pass\n  elif d:\n    pass\n  elif e:\n    pass\n"
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_repository_keeps_the_budget(rule: Rule) -> None:
    assert "\n".join(rule(ROOT)) == ""


@pytest.mark.parametrize(
    ("rule", "file", "text"),
    [
        (shape.length_violations, "long.py", "x = 1\n" * 401),
        (shape.median_violations, "median.go", "x\n" * 151),
        (shape.nesting_violations, "deep.py", DEEP),
        (shape.function_violations, "long.py", "def f():\n" + "    x = 1\n" * 50),
        (shape.function_violations, "long.go", "func (s *S) F() {\n" + "\tx()\n" * 50 + "}\n"),
        (shape.name_violations, "a/utils.py", ""),
        (shape.name_violations, "common/a.go", ""),
        (shape.name_violations, "session_manager.py", ""),
        (shape.init_violations, "a/__init__.py", '"""Text."""\nVERSION = 1\n'),
        (shape.init_violations, "a/__init__.py", "def f(): ...\n"),
        (shape.skip_violations, "test_a.py", "import pytest\n@pytest.mark" + ".skipif(True)\ndef test_a(): ...\n"),
        (shape.skip_violations, "a_test.go", "t." + "Skip()\n"),
    ],
)
def test_planted_violation(tmp_path: Path, rule: Rule, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert len(list(rule(tmp_path))) == 1


def test_files_that_git_ignores_do_not_count(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], timeout=60, check=True)
    (tmp_path / ".gitignore").write_text("build/\n", encoding="utf-8")
    for folder in ("runtime/build/lib", "runtime/src"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "utils.py").touch()
    assert list(shape.name_violations(tmp_path)) == ["runtime/src/utils.py: utils says nothing; take a noun"]


def test_nothing_is_committed_that_git_ignores() -> None:
    """What is ignored comes and goes in part: half a `node_modules` hides a whole one; nobody needs a log."""
    command = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, timeout=60, check=(ROOT / ".git").exists(), capture_output=True, text=True)
    assert done.stdout == ""


def test_elif_is_not_deeper_than_its_if(tmp_path: Path) -> None:
    (tmp_path / "flat.py").write_text(ELIF, encoding="utf-8")
    assert list(shape.nesting_violations(tmp_path)) == []
