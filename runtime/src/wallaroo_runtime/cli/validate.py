"""`wallaroo validate FILE`: check a topology, the interface hashes of its workers included."""

import argparse
from typing import Any

from wallaroo_runtime.cli.document import read_topology
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.explain import count
from wallaroo_runtime.program.application import check_interface
from wallaroo_runtime.topology.canonical import interface_hash


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("validate", help="check a topology file", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="topology as `wallaroo emit` prints it; - reads stdin")
    parser.add_argument("--hash", action="store_true", help="print the interface hash that workers of FILE must have")
    parser.add_argument("--json", action="store_true", help="write findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Check the file; findings are raised."""
    topology = read_topology(arguments.file)
    compile_topology(topology, shuffle_partitions=1)
    if arguments.hash:
        print(interface_hash(topology))
        return 0
    check_interface(topology)
    parts = {"source": topology.sources(), "step": topology.steps(), "sink": topology.sinks()}
    counts = ", ".join(count(sum(1 for _ in items), noun) for noun, items in parts.items())
    print(f'application "{topology.name}" is correct: {counts}')
    return 0
