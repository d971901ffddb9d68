"""The example of a PySpark job and its notebook: they do on Spark what their pages print."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.notebook import cells_of, outputs_of
from support.page import DOCS, blocks
from support.tutorial import EXAMPLES
from wallaroo_runtime.program.init import init

ROOT = DOCS.parent
EXAMPLE = EXAMPLES / "pyspark_job"
pytestmark = pytest.mark.jvm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the example."""
    return shutil.copytree(EXAMPLE, tmp_path / "job", ignore=shutil.ignore_patterns("__pycache__", "out"))


def ran(folder: Path, *arguments: str) -> str:
    """Run a program in a folder, in UTC, to its end."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, "TZ": "UTC"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed() -> str:
    """Return the table that the page shows."""
    (table,) = [block.text for block in blocks(DOCS / "tutorial" / "pyspark_job.md") if block.text.startswith("+--")]
    return table


def test_the_job_prints_the_page_s_table_and_goes_on_with_later_files(folder: Path) -> None:
    assert ran(folder, "job.py", "app.py").endswith(printed() + "\n")
    later = '{"customer": "bob", "amount": 500, "at": "2026-01-04T12:00:00Z"}\n'
    (folder / "orders" / "later.json").write_text(later, encoding="utf-8")
    lines = ran(folder, "job.py", "app.py").splitlines()
    assert [line for line in lines if "Rome" in line and "500" in line] == [
        "|bob     |500.0 |47.5 |2026-01-04 12:00:00|Rome|"
    ]
    assert "\n".join(printed().splitlines()[:-1]) in "\n".join(lines)


@pytest.mark.long
def test_the_job_does_the_same_with_the_program_in_go(folder: Path) -> None:
    init(folder)
    assert ran(folder, "job.py", ".").endswith(printed() + "\n")


def test_the_cells_of_the_notebook_give_the_outputs_that_are_in_it(folder: Path, rewrites_golden: bool) -> None:
    file = EXAMPLE / "dataframes.ipynb"
    notebook = json.loads(file.read_text(encoding="utf-8"))
    cells = cells_of(notebook)
    outputs = outputs_of(("".join(cell["source"]) for cell in cells), folder)
    if rewrites_golden:
        for cell, output in zip(cells, outputs, strict=True):
            cell["outputs"] = output
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [cell["outputs"] for cell in cells] == outputs
    assert any("data" in output for output in outputs[-1]), "the plot"


BEFORE = 'history, live, customers = orders, new, spark.read.json("customers")'
AFTER = """
query.processAllAvailable()
query.stop()
print(past.count(), spark.read.parquet("alerts").count())
"""


def test_the_samples_of_page_and_readme_print_what_follows_them(folder: Path) -> None:
    pieces: list[tuple[str, str]] = []
    for block in blocks(DOCS / "dataframes.md"):
        if block.title and "--8<--" not in block.text:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and not block.title:
            pieces.append((block.text, ""))
        elif block.text.startswith("+--"):
            pieces[-1] = pieces[-1][0], block.text
    readme = next(block.text for block in blocks(ROOT / "README.md") if "dataframe import load" in block.text)
    pieces += [(BEFORE, ""), (readme, ""), (AFTER, "3 3")]
    outputs = outputs_of((text for text, _ in pieces), folder)
    said = ["".join("".join(each["text"]) for each in output).strip() for output in outputs]
    assert said == [printed.strip() for _, printed in pieces]
