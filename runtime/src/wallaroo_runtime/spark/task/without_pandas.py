"""Keeps pandas out of this project's processes: it takes 48 MB and a third of a second in each that imports it.

Neither the driver nor a task has a use for it, but PySpark and Arrow import it where it is installed, to see whether
they have been given data of its types.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder

from pyspark.sql.pandas import functions


class _Absent(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            reason = "No module named 'pandas'"
            raise ModuleNotFoundError(reason, name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let an `import pandas` in this block fail, as where it is not installed; nothing changes where it is imported.

    What PySpark and Arrow do not find now, they do not look for again. An import after the block finds it.
    """
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


def map_without_pandas() -> None:
    """Let `DataFrame.mapInArrow` not import pandas: PySpark asks for its version there, and for nothing else."""
    functions.require_minimum_pandas_version = lambda: None  # type: ignore[attr-defined]
