"""Fetches jars with Maven, and keeps them in the user's cache."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.process import dying_with_parent

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
FETCH_S, LOOK_S = 600.0, 0.1
HEAD_CHARACTERS, TAIL_CHARACTERS = 100, 300  # ends of a long reason that are kept: goal and error
LAST_LINES = 3
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>wallaroo</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The caller's functions that `fetched_jars` calls while Maven runs.

    Attributes:
        tell: Called when Maven is started.
        is_over: Called from time to time; returns whether to end Maven, because nobody needs the result.
    """

    tell: Callable[[], None] = lambda: None
    is_over: Callable[[], bool] = lambda: False


PATIENT = Waiting()


def fetched_jars(name: str, coordinates: Sequence[str], alone: str = "", waiting: Waiting = PATIENT) -> Path:
    """Return a directory with jars and their dependencies. Only the first call fetches them.

    Args:
        name: Name of the directory in the cache, different for each version.
        coordinates: GROUP:ARTIFACT:VERSION of each jar.
        alone: Coordinates of another jar, which comes without its dependencies; empty for none.

    Raises:
        RunError: R675 if Maven is missing, or does not find a jar.
    """
    cache = cache_directory()
    target = cache / name
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    # Fetch into a temporary directory, then rename it, since another program may fetch the same jars.
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=cache) as temporary:
        jars = Path(temporary, "jars")
        jars.mkdir()
        pom = Path(temporary, "pom.xml")
        pom.write_text(_pom(coordinates, alone), encoding="utf-8")
        options = ("-f", str(pom), "-DincludeScope=runtime", f"-DoutputDirectory={jars}")
        if reason := run_maven(Path(temporary), "copy-dependencies", *options, waiting=waiting):
            raise RunError.of(
                "R675", USAGE, what=coordinates[0], reason=reason, more=f"; what it fetches stays in {target}"
            )
        try:
            jars.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another program has already made the directory
                raise
    return target


def run_maven(directory: Path, goal: str, *options: str, waiting: Waiting = PATIENT) -> str:
    """Let Maven run a goal of the plugin that copies jars. Return the reason of a failure, or an empty text."""
    maven = shutil.which("mvn")
    if maven is None:
        return "there is no `mvn` on PATH"
    waiting.tell()
    process = subprocess.Popen(
        [maven, "-q", "-B", f"{PLUGIN}:{goal}", *options],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C in a terminal must only reach this process, which then ends Maven
        preexec_fn=dying_with_parent(signal.SIGKILL),
    )
    try:
        return _reason(process, waiting)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _reason(process: subprocess.Popen[str], waiting: Waiting) -> str:
    """Wait for the end of Maven. Return why it failed, or an empty text."""
    deadline = time.monotonic() + FETCH_S
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            output, _ = process.communicate(timeout=LOOK_S)
            return maven_reason(output, process.returncode) if process.returncode else ""
        if waiting.is_over():
            return "it was stopped meanwhile"
    return f"Maven did not end within {FETCH_S:g} s"


def _pom(coordinates: Sequence[str], alone: str) -> str:
    dependencies = [_DEPENDENCY.format(*coordinate.split(":"), "") for coordinate in coordinates]
    if alone:
        dependencies.append(_DEPENDENCY.format(*alone.split(":"), _ALONE))
    return _POM.format(dependencies="\n".join(dependencies))


def maven_reason(output: str, code: int = 1) -> str:
    r"""Return the first error in the output of Maven; the last lines of the output if it has no error.

    Example:
        >>> maven_reason("[INFO] Scanning\n[ERROR] no such artifact\n[ERROR] -> [Help 1]")
        'no such artifact'
        >>> maven_reason("mvn: line 7:\n\njava: not found\n", 127)
        'Maven ended with exit code 127; its last lines: mvn: line 7: | java: not found'
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    last_lines = " | ".join(lines[-LAST_LINES:])
    end = f"signal {-code}" if code < 0 else f"exit code {code}"
    text = next(
        filter(None, errors), f"Maven ended with {end}; its last lines: {last_lines}" if last_lines else f"Maven: {end}"
    )
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return text
    return f"{text[:HEAD_CHARACTERS]} … {text[-TAIL_CHARACTERS:]}"
