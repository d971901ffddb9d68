"""Checks that a Java for Spark is there, runs and is new enough. If not, Spark would print a page of shell output."""

import os
import re
import subprocess

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.system.java import java_program

MINIMUM = 17
DEADLINE_S = 30
UNUSABLE = "cannot be used"


def check_java() -> int:
    """Check the Java that Spark will use, and return its version.

    Raises:
        RunError: R602 if there is no Java, or it does not run or is too old.
    """
    home = os.environ.get("JAVA_HOME", "")
    program = java_program()
    if program is None:
        raise RunError.of("R602", problem="was not found", reason="there is no `java` on PATH and JAVA_HOME is not set")
    try:
        done = subprocess.run(
            [program, "-version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False
        )
    except OSError as error:
        where = f"JAVA_HOME is {home}; " if home else ""
        raise RunError.of(
            "R602", problem="was not found", reason=f"{where}{program}: {error.strerror or error}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RunError.of("R602", problem=UNUSABLE, reason=f"{program} gave no answer within {DEADLINE_S} s") from error
    text = (done.stderr + done.stdout).decode("utf-8", "replace")
    version = re.search(r'version "(?:1\.)?([0-9]+)', text)
    if done.returncode or version is None:
        raise RunError.of(
            "R602", problem=UNUSABLE, reason=f"`{program} -version` failed: {text.strip()[:200] or done.returncode}"
        )
    if int(version[1]) < MINIMUM:
        raise RunError.of(
            "R602", problem=UNUSABLE, reason=f"{program} is Java {version[1]}; Spark needs {MINIMUM} or newer"
        )
    return int(version[1])
