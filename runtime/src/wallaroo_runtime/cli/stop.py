"""`wallaroo stop CHECKPOINT|APP`: end a run in order, as Ctrl-C does. The next run continues from the checkpoint."""

import argparse
import time
from typing import Any

from wallaroo_runtime.checkpoint.directory import find_directory
from wallaroo_runtime.cli.parser import amount
from wallaroo_runtime.console.json_line import print_result
from wallaroo_runtime.errors import RunError

TIMEOUT_S = 60.0
LOOK_S = 0.05


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("stop", help="end a run in order", description=__doc__)
    parser.add_argument("checkpoint", metavar="CHECKPOINT|APP", help="checkpoint directory, or the application")
    read = amount("number of seconds", "60")
    parser.add_argument("--timeout", type=read, default=TIMEOUT_S, metavar="SECONDS", help="wait so long; default: 60")
    parser.add_argument("--json", action="store_true", help="as one JSON object; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Ask the driver of an application to end, and wait for its end."""
    from wallaroo_runtime.checkpoint.registry import supervisor_of
    from wallaroo_runtime.monitor.endpoint import driver_of  # late import: it needs an HTTP client

    checkpoint = find_directory(arguments.checkpoint)
    driver = supervisor_of(checkpoint) or driver_of(checkpoint)  # one that restarts drivers passes the signal on
    if driver is None or not driver.interrupt():
        reason, fix = "no application runs on it", "`wallaroo ps` lists the runs that go on"
        raise RunError.of("R769", path=checkpoint, reason=reason, fix=fix)
    deadline = time.monotonic() + arguments.timeout
    while driver.is_alive:
        if time.monotonic() >= deadline:
            reason = f"process {driver.pid} was asked to end and still runs after {arguments.timeout:g} s"
            fix = "wait with a longer --timeout; `kill -9` ends it, and the next run continues from the checkpoint"
            raise RunError.of("R769", path=checkpoint, reason=reason, fix=fix)
        time.sleep(LOOK_S)
    values = {"checkpoint": str(checkpoint), "pid": driver.pid, "state": "stopped"}
    print_result(values, f"stopped process {driver.pid}", as_json=arguments.json)
    return 0
