"""The example of a PySpark job and its notebook: they do on Spark what their pages print."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.notebook import cells_of, outputs_of
from support.page import DOCS, blocks
from support.run import with_archive
from support.tutorial import EXAMPLES, example_blocks
from wallaroo_runtime.program.init import init

ROOT = DOCS.parent
EXAMPLE = EXAMPLES / "pyspark_job"
pytestmark = pytest.mark.jvm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the example."""
    return copied(tmp_path / "job")


def copied(folder: Path) -> Path:
    """Copy the example to a folder."""
    return shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "out"))


def ran(folder: Path, *arguments: str) -> str:
    """Run a program in a folder, in UTC, to its end."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, **with_archive(folder.with_name("logs")), "TZ": "UTC"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed() -> str:
    """Return the table that the page shows."""
    (table,) = [block.text for block in example_blocks("pyspark_job") if block.text.startswith("+--")]
    return table


@pytest.mark.long
def test_the_job_does_the_same_with_the_program_in_go_and_goes_on_with_later_files(folder: Path) -> None:
    init(folder)
    assert ran(folder, "job.py", ".").endswith(printed() + "\n")
    later = '{"customer": "bob", "amount": 500, "at": "2026-01-04T12:00:00Z"}\n'
    (folder / "orders" / "later.json").write_text(later, encoding="utf-8")
    lines = ran(folder, "job.py", ".").splitlines()
    assert [line for line in lines if "Rome" in line and "500" in line] == [
        "|bob     |500.0 |47.5 |2026-01-04 12:00:00|Rome|"
    ]
    assert "\n".join(printed().splitlines()[:-1]) in "\n".join(lines)


BEFORE = 'history, live, customers = orders, new, spark.read.json("customers")'
AFTER = """
query.processAllAvailable()
query.stop()
print(past.count(), spark.read.parquet("alerts").count())
"""
FORGET = """
import shutil
[each.stop() for each in spark.streams.active]
shutil.rmtree("out", ignore_errors=True)
"""
JOB = """
import runpy, sys
sys.argv = ["job.py", "app.py"]
_ = runpy.run_path("job.py", run_name="__main__")
"""
QUIET = 'load("quiet.py")'
NOTEBOOK = EXAMPLE / "dataframes.ipynb"


def samples() -> list[tuple[str, str]]:
    """Return the programs of page and README, each with what it prints."""
    pieces: list[tuple[str, str]] = []
    for block in blocks(DOCS / "dataframes.md"):
        if block.language == "python" and not block.title:
            pieces.append((block.text, ""))
        elif block.text.startswith("+--"):
            pieces[-1] = pieces[-1][0], block.text
    in_python = next(piece for piece in pieces if QUIET in piece[0])
    in_go = in_python[0].replace(QUIET, 'load("quiet")'), in_python[1]
    readme = next(block.text for block in blocks(ROOT / "README.md") if "dataframe import load" in block.text)
    return [*pieces, in_go, (BEFORE, ""), (readme, ""), (AFTER, "3 3")]


def notebook() -> dict[str, Any]:
    """Return the notebook."""
    content: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """Return what the cells of the notebook give, then the samples, then the job, on one Spark."""
    cells = ["".join(cell["source"]) for cell in cells_of(notebook())]
    folder = copied(tmp_path_factory.mktemp("samples") / "job")
    for block in blocks(DOCS / "dataframes.md"):
        if block.title and not block.file:
            (folder / block.title).parent.mkdir(exist_ok=True)
            (folder / block.title).write_text(block.text, encoding="utf-8")
    return outputs_of([*cells, FORGET, *(text for text, _ in samples()), FORGET, JOB], folder)


def text_of(output: list[dict[str, Any]]) -> str:
    """Return what a piece has printed."""
    return "".join("".join(each["text"]) for each in output)


def test_the_job_prints_the_page_s_table(outputs: list[list[dict[str, Any]]]) -> None:
    assert text_of(outputs[-1]).endswith(printed() + "\n")


def test_the_cells_of_the_notebook_give_the_outputs_that_are_in_it(
    outputs: list[list[dict[str, Any]]], rewrites_golden: bool
) -> None:
    content = notebook()
    cells = cells_of(content)
    given = outputs[: len(cells)]
    if rewrites_golden:
        for cell, output in zip(cells, given, strict=True):
            cell["outputs"] = output
        NOTEBOOK.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [cell["outputs"] for cell in cells] == given
    assert any("data" in output for output in given[-1]), "the plot"


def test_the_samples_of_page_and_readme_print_what_follows_them(outputs: list[list[dict[str, Any]]]) -> None:
    pieces = samples()
    said = [text_of(output).strip() for output in outputs[-len(pieces) - 2 : -2]]
    assert said == [printed.strip() for _, printed in pieces]
