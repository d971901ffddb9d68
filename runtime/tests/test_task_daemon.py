"""The process that Spark's Python tasks are forks of."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc
from wallaroo_runtime.spark.daemon import preload
preload()
print(gc.get_freeze_count(), len(gc.get_objects()))
"""


@pytest.mark.slow
def test_what_is_imported_is_left_out_when_tasks_collect_garbage() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    frozen, visited = map(int, done.stdout.split())
    assert frozen > 50_000
    assert visited < 1_000
