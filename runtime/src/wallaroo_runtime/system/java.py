"""Finds the program that starts the Java virtual machine."""

import os
import shutil


def java_program() -> str | None:
    """Return the path of `java`: that of JAVA_HOME, which need not be there, or else the one on PATH; None: no Java."""
    home = os.environ.get("JAVA_HOME", "")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")
