"""Java that is starting ends with the process that has started it, also where nobody waits for it."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from support.run import wait_until

PROGRAM = """
import sys, time
from pathlib import Path
from wallaroo_runtime.spark.machine.virtual_machine import launch

print(launch("local[2]", Path(sys.argv[1]), {}).process.pid, flush=True)
time.sleep(float(sys.argv[2]))
"""
END_S = 30.0


@pytest.mark.jvm
def test_java_that_nobody_has_waited_for_ends(tmp_path: Path) -> None:
    pause = random.uniform(0.0, 1.0)
    print(f"pause {pause}")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(pause)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    java = Path("/proc", said.strip())
    wait_until(lambda: not os.path.exists(java), lambda: f"the end of {java}", END_S)
