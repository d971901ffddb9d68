"""The map of the tests, `tests/README.md`, has each folder, script and helper, and nothing that is not there."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROW = re.compile(r"^\| .* \| (`.*`) \|$", re.MULTILINE)


def test_each_folder_script_and_helper_is_on_the_map() -> None:
    first, helpers = (TESTS / "README.md").read_text().split("## Helpers")
    folders = {each.name for each in TESTS.iterdir() if each.is_dir() and each.name[0] not in "_."}
    assert sorted(re.findall(r"^\| `(\w+)` \|", first, re.MULTILINE)) == sorted(folders)
    modules = {each.stem for each in (TESTS / "support").glob("*.py")} - {"__init__"}
    assert sorted(name for row in ROW.findall(helpers) for name in re.findall(r"\w+", row)) == sorted(modules)
    scripts = {each.stem for each in TESTS.glob("*.py") if not each.stem.startswith(("test_", "conftest"))}
    assert {name for name in re.findall(r"`(\w+)\.py`", first) if name != "test_"} == scripts


def test_no_file_of_tests_imports_from_another_one() -> None:
    places = ("tests", "runtime/tests", "api/python/tests", "api/connectors/tests")
    files = [file for place in places for file in (TESTS.parent / place).rglob("*.py")]
    found = re.compile(r"^(?:from|import) test_\w+", re.MULTILINE)
    assert [str(file) for file in files if found.search(file.read_text())] == []
