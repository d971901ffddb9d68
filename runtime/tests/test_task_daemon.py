"""The process that Spark's Python tasks are forks of."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, sys
from wallaroo_runtime.spark.task.daemon import preload
preload()
print(gc.get_freeze_count(), len(gc.get_objects()))
import pyarrow
pyarrow.RecordBatch.from_pylist([{"name": "a"}])
print("pandas" in sys.modules)
import pandas  # who needs it still finds it
print(pyarrow.array(pandas.Series([1, 2])).to_pylist())
"""


@pytest.mark.slow
def test_what_is_imported_is_left_out_when_tasks_collect_garbage() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    frozen, visited, *pandas = done.stdout.split(maxsplit=3)
    assert int(frozen) > 50_000
    assert int(visited) < 1_000
    assert pandas == ["False", "[1, 2]\n"]
