"""`wallaroo ps`: the applications that this user runs on this machine."""

import argparse
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.registry import running
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.console.table import number, place, print_table, text

COLUMNS = (number("pid", 8), text("application", 32), place("checkpoint"))


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("ps", help="list the applications that run", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with the URL of the monitor")


def run(arguments: argparse.Namespace) -> int:
    """Print the running applications of this user."""
    from wallaroo_runtime.monitor.endpoint import monitor_of  # late import: it needs an HTTP client

    if arguments.json:
        for each in running():
            print_json({**each, "monitor": monitor_of(Path(each["checkpoint"]))})
        return 0
    rows = [(str(each["pid"]), each["application"], each["checkpoint"]) for each in running()]
    print_table(COLUMNS, rows)
    return 0
