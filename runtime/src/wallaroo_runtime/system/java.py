"""Finds the program that starts the Java virtual machine."""

import os
import shutil


def java_program() -> str | None:
    """Return the path of `java`: in JAVA_HOME, even if it is missing there, else on PATH; None if there is none."""
    home = os.environ.get("JAVA_HOME", "")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")
