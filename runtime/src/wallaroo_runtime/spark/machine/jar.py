"""The jar with what the runtime has in Java: in the wheel, or built by `make setup`."""

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from wallaroo_runtime.errors import USAGE, RunError

NAME = "realtime.jar"
SPARK = "4.3."


def check_spark() -> None:
    """Refuse a Spark whose real-time mode has no state.

    Raises:
        RunError: R755.
    """
    found = version("pyspark")
    if not found.startswith(SPARK):
        remedy = f"install PySpark {SPARK}0, or leave out --mode"
        raise RunError.of("R755", USAGE, what=f"PySpark {found}", fix=remedy)


def operator_jar() -> Path:
    """Return the jar.

    Raises:
        RunError: R758, it is missing.
    """
    packed = Path(str(files("wallaroo_runtime"))) / "_java" / NAME
    built = Path(__file__).resolve().parents[4] / "build" / "java" / NAME
    for path in (packed, built):
        if path.is_file():
            return path
    raise RunError.of("R758", USAGE, path=built)
