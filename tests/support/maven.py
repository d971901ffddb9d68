"""Jars of real servers that tests start, fetched with Maven."""

import os
import shutil
import subprocess
from pathlib import Path

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
FETCH_S = 600
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def jars(name: str, *coordinates: str, alone: str = "") -> Path:
    """Return a directory of jars with all that they need to run; fetched once and kept.

    Args:
        name: Of the directory.
        coordinates: GROUP:ARTIFACT:VERSION of each.
        alone: One more, which comes without what it needs.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "wallaroo")
    target = cache / name
    if not target.is_dir():
        fetching = cache / f"{name}.{os.getpid()}"
        fetching.mkdir(parents=True)
        pom = fetching / "pom.xml"
        dependencies = [DEPENDENCY.format(*each.split(":"), "") for each in coordinates]
        if alone:
            dependencies.append(DEPENDENCY.format(*alone.split(":"), ALONE))
        pom.write_text(POM.format(dependencies="\n".join(dependencies)))
        command = ["mvn", "-q", "-B", "-f", str(pom), PLUGIN, "-DincludeScope=runtime", f"-DoutputDirectory={fetching}"]
        subprocess.run(command, check=True, timeout=FETCH_S)
        try:
            fetching.rename(target)
        except OSError:  # another run was faster
            shutil.rmtree(fetching)
    return target
