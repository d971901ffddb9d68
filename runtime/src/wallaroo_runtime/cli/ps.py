"""`wallaroo ps`: the applications that this user runs on this machine."""

import argparse
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.registry import running
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.console.table import WHOLE, number, print_table, text

COLUMNS = (number("pid", 8), text("application", 32), text("processes"), text("checkpoint", least=WHOLE))


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("ps", help="list the applications that run", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with the monitor's URL")


def run(arguments: argparse.Namespace) -> int:
    """Print the running applications of this user."""
    from wallaroo_runtime.cli.status import processes
    from wallaroo_runtime.monitor.endpoint import status_of  # late import: it needs an HTTP client

    rows = []
    for each in running():
        status = status_of(Path(each["checkpoint"]))
        others = {name: pid for name, pid in processes(status).items() if pid != each["pid"]}
        if arguments.json:
            print_json({**each, "processes": others, "monitor": status["monitor"]})
            continue
        listed = ", ".join(f"{name} {pid}" for name, pid in others.items())
        rows.append((str(each["pid"]), each["application"], listed, each["checkpoint"]))
    if not arguments.json:
        print_table(COLUMNS, rows)
    return 0
