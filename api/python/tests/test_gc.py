"""The collector of a worker comes less often, and comes."""

import gc
import subprocess
import sys
from typing import Any

import pytest

from wallaroo.worker.host.gc import OBJECTS

PROGRAM = """
import gc, weakref
from wallaroo.worker.host.gc import collect_less
{first}
collect_less()

class Node:
    pass

alive, most = weakref.WeakSet(), 0
for _ in range({count}):
    node = Node()
    node.me = node
    alive.add(node)
    most = max(most, len(alive))
print(gc.get_threshold()[0], gc.isenabled(), gc.get_freeze_count() > 0, most)
"""


def run(first: str, count: int) -> list[Any]:
    program = PROGRAM.format(first=first, count=count)
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    threshold, *rest, most = done.stdout.split()
    return [int(threshold), *rest, int(most)]


@pytest.mark.slow
def test_cycles_of_the_program_are_collected() -> None:
    threshold, is_enabled, is_frozen, most = run("", 5 * OBJECTS)
    assert (threshold, is_enabled, is_frozen) == (OBJECTS, "True", "True")
    assert most <= 2 * OBJECTS


@pytest.mark.slow
def test_a_program_that_chose_for_itself_keeps_that() -> None:
    assert run("gc.set_threshold(123)", 500)[:3] == [123, "True", "True"]
    assert run("gc.disable()", 500)[:3] == [gc.get_threshold()[0], "False", "True"]
