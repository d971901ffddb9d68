"""Prose names real files, copies are equal, the error catalogue is tested, the public surface is the recorded one."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from architecture import document, prose, remedy
from architecture.source import ROOT
from architecture.surface import GO_PACKAGES, surface
from wallaroo.diagnostic.diagnostic import Kind

HERE = Path(__file__).resolve().parent


def test_prose_names_real_files() -> None:
    assert "\n".join(document.path_violations(ROOT)) == ""


def test_copy_of_the_catalogue_for_go_is_equal() -> None:
    catalogue = ROOT / "topology-schema" / "errors.json"
    assert (ROOT / "api/go/internal/diagnostic/errors.json").read_bytes() == catalogue.read_bytes()


def test_catalogue_is_in_order_and_each_code_stands_once() -> None:
    assert "\n".join(document.catalogue_violations(ROOT)) == ""


def test_every_code_has_a_test() -> None:
    assert " ".join(document.untested_codes(ROOT)) == ""


def test_every_code_can_be_reported() -> None:
    assert " ".join(document.unused_codes(ROOT)) == ""


def test_programs_decide_on_kinds_and_not_on_codes(copy: Path) -> None:
    assert document.kinds(ROOT) == {kind.value for kind in Kind} - {""}
    assert "\n".join(document.code_comparisons(ROOT)) == ""
    (copy / document.PACKAGES).mkdir(parents=True)
    (copy / document.PACKAGES / "errors.py").write_text('is_gone = error.code in ("R616", "R609")\n', encoding="utf-8")
    assert len(list(document.code_comparisons(copy))) == 1


def test_every_error_is_made_with_all_values_of_its_texts() -> None:
    assert len(remedy.raises(ROOT)) > 300
    assert "\n".join(remedy.missing_values(ROOT)) == ""


def test_the_remedy_of_every_code(rewrites_golden: bool) -> None:
    recorded("remedies.txt", remedy.remedies(ROOT), rewrites_golden)


def test_codes_whose_causes_need_other_commands_name_their_causes() -> None:
    entries = remedy.catalogue(ROOT).values()
    assert [entry["code"] for entry in entries if entry["fix"] == "{fix}" and not entry.get("causes")] == []


@pytest.mark.slow
def test_vectors_are_fresh() -> None:
    command = [sys.executable, "-m", "vector.make_vectors", "--check"]
    done = subprocess.run(command, cwd=ROOT / "tests", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the prose and the contracts."""
    for name in (*document.DOCUMENTS, "topology-schema/errors.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_planted_name_of_a_file_that_is_gone(copy: Path) -> None:
    before = set(document.path_violations(copy))
    with (copy / "README.md").open("a", encoding="utf-8") as readme:
        readme.write("\nSee `runtime/src/gone.py`.\n")
    assert set(document.path_violations(copy)) - before == {"README.md: runtime/src/gone.py does not exist"}


def test_planted_code_without_a_test(copy: Path) -> None:
    (copy / "tests" / "test_one.py").write_text("T101", encoding="utf-8")
    missing = document.untested_codes(copy)
    assert "T101" not in missing
    assert "T102" in missing


def recorded(name: str, lines: list[str], writes: bool) -> None:
    """Compare a surface with its file, or write the file."""
    file = HERE / name
    if writes:
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert file.read_text(encoding="utf-8").splitlines() == lines, f"{name}: review, then `make golden`"


def test_public_surface_of_the_python_sdk(rewrites_golden: bool) -> None:
    recorded("surface.python", sorted(surface()), rewrites_golden)


@pytest.mark.slow
def test_public_surface_of_the_go_sdk(rewrites_golden: bool) -> None:
    lines = []
    for package in GO_PACKAGES:
        command = ["go", "doc", "-all", "-short", package]
        done = subprocess.run(command, cwd=ROOT / "api" / "go", capture_output=True, text=True, check=True)
        lines += [
            f"{package} {line.strip()}" for line in done.stdout.splitlines() if line.startswith(("func ", "type "))
        ]
    recorded("surface.go.txt", sorted(lines), rewrites_golden)


def test_the_map_is_short_and_the_pages_of_internals_are_alike() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_bytes()) <= 10_000
    for page in {*(ROOT / "docs" / "internals").glob("*.md")} - {ROOT / "docs" / "internals" / "experiments.md"}:
        headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Purpose", "Files", "Protocol", "Invariants", "Tests"], page.name


def test_prose_has_the_words_of_the_field() -> None:
    assert "\n".join(prose.word_violations(ROOT)) == ""


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("docs/page.md", "The end is behind.\nIt begins anew.", ["docs/page.md:1: behind", "docs/page.md:2: anew"]),
        ("runtime/src/a.py", 'behind = 1  # at work\ntext = "it is told"',
         ["runtime/src/a.py:1: at work", "runtime/src/a.py:2: is told"]),
        ("runtime/tests/a.py", 'def f() -> None:\n    """One line.\n\n    Elsewhere."""\n    return "anew"',
         ["runtime/tests/a.py:4: Elsewhere"]),
        ("api/a.go", 'var behind = "gives it out" // tells', ["api/a.go:1: gives it out", "api/a.go:1: tells"]),
        ("runtime/src/b.py", 'text = (\n    "it is "\n    f"told"\n)', ["runtime/src/b.py:2: is told"]),
        ("runtime/src/c.py", "text = 'it goes ' \\\n    'out'", ["runtime/src/c.py:1: goes out"]),
        ("docs/fine.md", "Text left behind; it stands for itself; told apart; any more than two.", []),
    ],
)  # fmt: skip
def test_planted_words(name: str, text: str, words: list[str]) -> None:
    found = [re.sub(r'"(.*?)".*', r"\1", each) for each in prose.found_in(name, text)]
    assert sorted(found) == sorted(words)


@pytest.mark.slow
def test_the_wheels_are_made_without_what_only_tests_need(tmp_path: Path) -> None:
    """The operators in Java need Spark's jars, and nothing else has to be there."""
    command = ["make", "-n", "-B", "--no-print-directory", "build", f"VENV={tmp_path}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    installed = re.findall(r"^[^#\n]*(?:pip install|go install|go mod download).*", said, re.MULTILINE)
    assert [line for line in installed if "pyspark" not in line] == []
    assert "./runtime" in said.splitlines()[-1]
