"""Jars of programs in Java, fetched with Maven once and kept in the user's cache."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.system.cache import cache_directory

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
FETCH_S = 600
REASON_CHARACTERS = 300
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


def fetched_jars(name: str, coordinates: Sequence[str], alone: str = "") -> Path:
    """Return a directory of jars with all that they need to run.

    Args:
        name: Of the directory in the cache; another version has another name.
        coordinates: GROUP:ARTIFACT:VERSION of each.
        alone: One more, which comes without what it needs; empty: none.

    Raises:
        RunError: R724, Maven is missing, or does not find one.
    """
    cache = cache_directory()
    target = cache / name
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    # In a directory of its own, then renamed: another program may fetch the same.
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=cache) as temporary:
        jars = Path(temporary, "jars")
        jars.mkdir()
        pom = Path(temporary, "pom.xml")
        pom.write_text(_pom(coordinates, alone), encoding="utf-8")
        options = ("-f", str(pom), "-DincludeScope=runtime", f"-DoutputDirectory={jars}")
        if reason := run_maven(Path(temporary), "copy-dependencies", *options):
            raise RunError.of("R724", USAGE, what=coordinates[0], path=target, reason=reason)
        try:
            jars.rename(target)
        except OSError:
            if not target.is_dir():  # else another program was faster
                raise
    return target


def run_maven(directory: Path, goal: str, *options: str) -> str:
    """Run a goal of the plugin that copies jars, in a directory; returns why that failed, or an empty text."""
    maven = shutil.which("mvn")
    if maven is None:
        return "there is no `mvn` on PATH"
    command = [maven, "-q", "-B", f"{PLUGIN}:{goal}", *options]
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"Maven did not end within {FETCH_S} s"
    return maven_reason(done.stdout + done.stderr) if done.returncode else ""


def _pom(coordinates: Sequence[str], alone: str) -> str:
    dependencies = [_DEPENDENCY.format(*coordinate.split(":"), "") for coordinate in coordinates]
    if alone:
        dependencies.append(_DEPENDENCY.format(*alone.split(":"), _ALONE))
    return _POM.format(dependencies="\n".join(dependencies))


def maven_reason(output: str) -> str:
    r"""Return the first error in what Maven has printed.

    Example:
        >>> maven_reason("[INFO] Scanning\n[ERROR] no such artifact\n[ERROR] -> [Help 1]")
        'no such artifact'
    """
    lines = [line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]")]
    return (lines[0] if lines else "Maven failed")[:REASON_CHARACTERS]
