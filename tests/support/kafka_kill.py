"""Kills processes of an application in real-time mode, which goes on or is started again."""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

from support.drawn_group import DEADLINE_S, wait_until_ready
from support.kafka_application import Application
from support.run import wait_until

REALTIME = ("--mode", "realtime")
PROCESSES = {
    "driver": r"wallaroo run ",
    "JVM": r"java .*SparkSubmit",
    "gateway": r"wallaroo_runtime\.gateway",
    "egress": r"wallaroo_runtime\.egress",
    "worker": r"wallaroo\.worker",
}
ENDING = ("driver", "JVM")  # the run ends with them; the others it starts again


def processes(running: Application) -> Mapping[str, int]:
    """Return the processes of a run that a kill may hit, by what they are."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            environment = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended
        if f"TMPDIR={running.directory}\0".encode() in environment:
            found |= {name: int(entry.name) for name, pattern in PROCESSES.items() if re.search(pattern, command)}
    return found


def kill(running: Application, victim: str) -> None:
    """Kill a process of a run, and wait until it is replaced; a run that ends with it is started again."""
    dead, known = processes(running)[victim], running.output().count("successfully initialized")
    os.kill(dead, signal.SIGKILL)
    if victim not in ENDING:
        wait_until(lambda: processes(running).get(victim, dead) != dead, running.output, DEADLINE_S)
        return
    running.wait()
    running.start(*REALTIME)
    wait_until_ready(running, times=known + 1)
