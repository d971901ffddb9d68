"""`wallaroo diff OLD NEW`: what changed between two versions of an application, and what it means for a checkpoint.

Exit codes are like those of diff: 0 when a checkpoint of OLD can go on with NEW as it is, 1 when it must be drained
before or cannot go on at all; 2 and 3 when a file cannot be read or is no correct topology. Of a checkpoint of
real-time mode it looks, too, whether a run would refuse NEW now (R623), since results have left that are not committed.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.checkpoint.place import check_places
from wallaroo_runtime.cli.document import WHAT, add_app_options, read_topology, split_document
from wallaroo_runtime.cli.stamp import print_json
from wallaroo_runtime.errors import RUN
from wallaroo_runtime.monitor.endpoint import driver_of
from wallaroo_runtime.plan.change import Change, Impact, compare
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

NAMES = {Impact.SAFE: "safe", Impact.NEEDS_DRAIN: "needs drain", Impact.BREAKS_STATE: "breaks state"}

split_arguments = split_document


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "diff", help="say what changed, and what it means for a checkpoint", description=__doc__
    )
    for name in ("old", "new"):
        parser.add_argument(name, metavar=name.upper(), help=f"{WHAT}; or a checkpoint directory")
    add_app_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print every change, the gravest first."""
    new = _read(arguments.new, arguments)
    changes = compare(_read(arguments.old, arguments), new)
    if arguments.json:
        for change in changes:
            print_json({"impact": change.impact.name.lower(), "path": change.path, "text": change.text})
    else:
        for change in changes:
            print(f"{NAMES[change.impact]:<13} {change.text}")
        if not changes:
            print("nothing changed")
    if any(change.impact > Impact.SAFE for change in changes):
        return RUN
    path = Path(arguments.old)
    note = _note(path, new, changes) if _is_checkpoint(path) else ""
    if note and not arguments.json:
        print(f"note: {note}", file=sys.stderr)
    return 0


def _note(path: Path, new: Topology, changes: list[Change]) -> str:
    return check_places(path, new, changes, is_in_use=driver_of(path) is not None)


def _is_checkpoint(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _read(name: str, arguments: argparse.Namespace) -> Topology:
    path = Path(name)
    if _is_checkpoint(path):
        return load_document(read_manifest(path).get("topology"))
    return read_topology(name, arguments)
