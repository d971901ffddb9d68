"""A Spark session without Java: the finding of the catalogue in place of Spark's page of shell output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.session import create_session
try:
    create_session("java", master="local[1]", shuffle_partitions=1, directory=Path(sys.argv[1]))
except RunError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_session_without_java(tmp_path: Path) -> None:
    home = tmp_path / "jdk"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "logs")],
        env=os.environ | {"JAVA_HOME": str(home)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"R602 Java was not found; JAVA_HOME is {home}; {home}/bin/java: No such file or directory\n"
        "  fix: install Java 17 and put `java` on PATH, or set JAVA_HOME"
        "; `wallaroo test` and `wallaroo run APP --engine memory` need no Java\n"
    )
