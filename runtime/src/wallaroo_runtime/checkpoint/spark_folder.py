"""Chooses names for Spark's own checkpoints in an application's checkpoint, and removes unused ones."""

import shutil
from pathlib import Path

from wallaroo_runtime.checkpoint.directory import SPARK


def next_name(spark: str) -> str:
    """Return the name of Spark's next own checkpoint.

    Example:
        >>> next_name("spark"), next_name("spark-2")
        ('spark-2', 'spark-3')
    """
    name, _, number = spark.partition("-")
    return f"{name}-{int(number or 1) + 1}"


def remove_rest(path: Path, spark: str) -> None:
    """Remove what a rescale has left: every checkpoint of Spark's except the one in use."""
    for entry in path.iterdir():
        if is_outdated(entry.name, spark) and entry.is_dir():
            shutil.rmtree(entry)


def is_outdated(name: str, used: str) -> bool:
    """Say whether a name belongs to a checkpoint of Spark's that is no longer used."""
    return name != used and (name == SPARK or name.startswith(f"{SPARK}-"))
