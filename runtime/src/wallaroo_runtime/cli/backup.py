"""`wallaroo backup`: copy a checkpoint as a whole, while nothing uses it."""

import argparse
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.directory import find_directory
from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.cli.run import URL
from wallaroo_runtime.console.json_line import print_result


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("backup", help="copy a checkpoint as a whole", description=__doc__)
    parser.add_argument("checkpoint", metavar="CHECKPOINT|APP", help="checkpoint directory, or the application")
    parser.add_argument("backup", metavar="DIR", help="directory to make")
    parser.add_argument("--json", action="store_true", help="the copy as a JSON object; findings as an array")


def run(arguments: argparse.Namespace) -> int:
    """Copy a checkpoint, and print the size of the copy."""
    from wallaroo_runtime.maintenance.backup import back_up  # late import: this module imports much

    if URL.match(arguments.checkpoint):
        reason = f"{arguments.checkpoint} is at a URL"
        fix = "copy it, and the directories of its gateways and egress, with the tools of its file system"
        raise wrong_usage(reason=reason, fix=fix)
    done = back_up(find_directory(arguments.checkpoint), Path(arguments.backup).absolute())
    print_copied(done, arguments.json, f"backed up {done.checkpoint} to {done.backup}")
    return 0


def print_copied(done: Any, as_json: bool, text: str) -> None:
    """Print the numbers of files and bytes that `backup` or `restore` has copied."""
    names = {"checkpoint": str(done.checkpoint), "backup": str(done.backup)}
    values = {**names, "files": done.files, "bytes": done.bytes}
    print_result(values, f"{text}: {done.files:,} files, {done.bytes:,} bytes", as_json=as_json)
