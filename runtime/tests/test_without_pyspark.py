"""What works where PySpark is not installed: all but runs on Spark, which say what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

# An import of a module that is None fails as one that is not installed.
WITHOUT = (
    "import sys; sys.modules.update(pyspark=None, py4j=None); "
    "from wallaroo_runtime.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


def wallaroo(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_a_new_project_is_tested_without_pyspark_and_a_run_says_what_to_install(tmp_path: Path) -> None:
    made = wallaroo("new", "mixed", "shop", folder=tmp_path)  # in Python and Go
    assert made.returncode == 0, made.stderr
    done = wallaroo("test", ".", folder=tmp_path / "shop")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 passed"), done.stderr
    done = wallaroo("run", "app.py", "--checkpoint", "checkpoint", folder=tmp_path / "shop")
    assert done.returncode == 2
    assert "R728 a run on Spark needs the package pyspark" in done.stderr
    assert " -m pip install 'wallaroo-spark-runtime[spark]', or rather run `make setup` in the checkout" in done.stderr
