"""Finds the jar with the runtime's Java classes: in the wheel, or built by `make setup`."""

import hashlib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from wallaroo_runtime.errors import USAGE, RunError

NAME, STAMP = "realtime.jar", "sources.sha256"
SPARK = "4.3."


def check_spark() -> None:
    """Refuse a version of Spark that does not support state in real-time mode.

    Raises:
        RunError: R755 if PySpark is of such a version.
    """
    installed = version("pyspark")
    if not installed.startswith(SPARK):
        remedy = f"install PySpark {SPARK}0, or leave out --mode"
        raise RunError.of("R755", USAGE, what=f"PySpark {installed}", fix=remedy)


def packed_jar() -> Path:
    """Return the path at which an installed wheel has the jar. A checkout has no file there."""
    return Path(str(files("wallaroo_runtime"))) / "_java" / NAME


def operator_jar() -> Path:
    """Return the path of the jar with the runtime's Java classes.

    Raises:
        RunError: R758 if the jar is missing, or was not built from the sources of this checkout.
    """
    packed = packed_jar()
    built = Path(__file__).resolve().parents[4] / "build" / "java" / NAME
    if packed.is_file():
        return packed
    if not built.is_file():
        raise RunError.of("R758", USAGE, reason=f"they are not built, there is no {built}")
    checkout = built.parents[3]
    if (built.parent / STAMP).read_text(encoding="ascii").split()[:1] != [sources_digest(checkout)]:
        raise RunError.of("R758", USAGE, reason=f"{built} is of other sources than this checkout has")
    return built


def sources_digest(checkout: Path) -> str:
    """Return the SHA-256 of the jar's sources, to notice an outdated jar. `make` writes this digest next to the jar."""
    java, schema = checkout / "runtime" / "java", checkout / "topology-schema"
    files = [
        java / "pom.xml",
        *(java / "src" / "main").rglob("*.java"),
        *schema.glob("*.proto"),
        schema / "errors.json",
    ]
    names = sorted(str(file.relative_to(checkout)) for file in files)
    return hashlib.sha256(b"".join((checkout / name).read_bytes() for name in names)).hexdigest()


def java_class(session: Any, name: str) -> Any:
    """Return Py4J's object for a class of the jar.

    Args:
        session: The Spark session whose Java has the jar.
        name: Name of the class, without `org.wallaroo.spark`.

    Raises:
        RunError: R758 if the jar has no such class, because it is of another build.
    """
    from py4j.java_gateway import JavaPackage  # type: ignore[import-untyped]  # late: commands without Spark are here

    # By its whole name: Java would look through all jars for each package on the way.
    found = getattr(session._jvm, f"org.wallaroo.spark.{name}")
    if isinstance(found, JavaPackage):  # Py4J takes an unknown name for a package
        raise RunError.of("R758", USAGE, reason=f"{operator_jar()} is of another build, it has no {name}")
    return found
