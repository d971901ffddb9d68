"""`wallaroo diff OLD NEW`: show changes between two versions of an application, and their effect on a checkpoint.

Exit codes are like those of diff: 0 if a checkpoint of OLD can continue with NEW, 1 if it must be drained before, or
cannot continue; 2 and 3 if a file cannot be read or is no correct topology. A change is `unknown` (exit code 0) if only
a run can show whether new code reads the stored states. If OLD and NEW name the same program, OLD means its checkpoint.
For a checkpoint that no run uses, the command also looks for the work that a drain would do.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Kind
from wallaroo_runtime.checkpoint.directory import MANIFEST, find_directory, running_directory, what_runs
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.cli.document import WHAT, add_app_options, is_document, read_topology, split_document
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RUN, RunError
from wallaroo_runtime.monitor.endpoint import is_served
from wallaroo_runtime.plan.change import Change, Impact, compare
from wallaroo_runtime.plan.port import kept_ports
from wallaroo_runtime.topology.model import Topology

NAMES = {
    Impact.SAFE: "safe",
    Impact.UNKNOWN: "unknown",
    Impact.NEEDS_DRAIN: "needs drain",
    Impact.BREAKS_STATE: "breaks state",
}

split_arguments = split_document


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "diff", help="show the changes, and their effect on a checkpoint", description=__doc__
    )
    for name in ("old", "new"):
        parser.add_argument(
            name, metavar=name.upper(), help=f"{WHAT}; or a checkpoint directory, or the name of a running application"
        )
    add_app_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print every change between two versions of an application, the most serious first."""
    new = _read(arguments.new, arguments)
    if arguments.old == arguments.new and _is_program(arguments.old):
        arguments.old = str(find_directory(arguments.old))
    old, path = _read(arguments.old, arguments), _checkpoint(arguments.old)
    changes = compare(old, new)
    if path is not None and any(change.impact is Impact.NEEDS_DRAIN for change in changes):
        changes = _with_work(changes, path, old, new)
    if arguments.json:
        for change in changes:
            print_json({"impact": change.impact.name.lower(), "path": change.path, "text": change.text})
    else:
        for change in changes:
            print(f"{NAMES[change.impact]:<13} {change.text}")
        if not changes:
            print("nothing changed")
    return RUN if any(change.impact > Impact.UNKNOWN for change in changes) else 0


def _with_work(changes: list[Change], path: Path, old: Topology, new: Topology) -> list[Change]:
    """Add the checkpoint's unfinished work to each change that must wait for it. Without such work the change is safe.

    The checkpoint of a running application, or with remote services, is not examined.
    """
    from wallaroo_runtime.checkpoint.drain import Drain, waiting_ports

    manifest = read_manifest(path)
    if manifest.services or is_served(path):
        return changes
    ports = waiting_ports(changes, manifest.ports, kept_ports(old, manifest.ports, new))
    left = Drain.of(path, manifest, LocalDirectory(path)).look(ports)
    impact, text = (Impact.NEEDS_DRAIN, left) if left else (Impact.SAFE, "nothing is left to drain")
    return [
        replace(each, impact=impact, text=f"{each.text}; {text}") if each.impact is Impact.NEEDS_DRAIN else each
        for each in changes
    ]


def _is_program(name: str) -> bool:
    return name != "-" and not is_document(Path(name)) and _checkpoint(name) is None


def _checkpoint(name: str) -> Path | None:
    """Return the checkpoint that `name` means: a path, or a running application's name. None if there is none.

    Raises:
        RunError: R715 if several such applications run.
    """
    path = Path(name)
    if (path / MANIFEST).is_file():
        return path
    return None if path.exists() else running_directory(name)


def _read(name: str, arguments: argparse.Namespace) -> Topology:
    if (path := _checkpoint(name)) is not None:
        return read_manifest(path).load()
    try:
        return read_topology(name, arguments)
    except RunError as error:
        if error.kind is not Kind.ABSENT or Path(name).exists():
            raise
        (finding,) = error.diagnostics
        raise RunError([replace(finding, message=f"{finding.message}{what_runs()}")], error.exit_code) from error
