"""Explains why an interpreter that `spark.wallaroo.worker.python` names was not executed."""

import os
import shutil
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic

SETTING = "spark.wallaroo.worker.python"
OPTION = f"--conf {SETTING}"


def refused(python: str, error: OSError) -> Diagnostic:
    """Return why the system did not execute an interpreter (W404), with a remedy for the probable cause."""
    path, reason = Path(python), error.strerror or str(error)
    first, _, options = python.partition(" ")
    inside = path / "bin" / "python"
    if path.is_dir():
        reason = "it is a directory"
        fix = f"give {OPTION}={inside}" if inside.exists() else "give the path of an interpreter"
    elif options and not path.exists() and shutil.which(first):
        reason, fix = "there is no such program", f"give {OPTION}={first}; options of it go into PYTHON... variables"
    elif path.exists() and not os.access(path, os.X_OK):
        fix = "give the path of an interpreter, or make this one executable"
    else:
        fix = f"give the path of an interpreter, which each machine has, or leave out {OPTION}: it is Spark's own then"
    return Diagnostic.of("W404", path=f"{OPTION}={python}", reason=reason, fix=fix)
