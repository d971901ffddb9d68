"""`wallaroo restore`: put a copy of a checkpoint in its original place, or in another place."""

import argparse
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.backup import print_copied


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("restore", help="put a copy of a checkpoint in its place", description=__doc__)
    parser.add_argument("backup", metavar="DIR", help="copy that `wallaroo backup` has made")
    parser.add_argument("checkpoint", metavar="CHECKPOINT", nargs="?", help="directory to make; default: where it was")
    parser.add_argument("--json", action="store_true", help="the copy as a JSON object; findings as an array")


def run(arguments: argparse.Namespace) -> int:
    """Restore the checkpoint, and print its size."""
    from wallaroo_runtime.maintenance.backup import restore  # late import: this module imports much

    target = Path(arguments.checkpoint).absolute() if arguments.checkpoint else None
    done = restore(Path(arguments.backup).absolute(), target)
    print_copied(done, arguments.json, f"restored {done.checkpoint} from {done.backup}")
    return 0
