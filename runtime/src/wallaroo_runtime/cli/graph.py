"""`wallaroo graph FILE`: draw a topology."""

import argparse
from typing import Any

from wallaroo_runtime.cli.document import read_topology
from wallaroo_runtime.plan.graph import dot, mermaid

FORMATS = {"mermaid": mermaid, "dot": dot}


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("graph", help="draw a topology as Mermaid or dot", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="topology as `wallaroo emit` prints it; - reads stdin")
    parser.add_argument("--format", choices=list(FORMATS), default="mermaid", help="default: mermaid")
    parser.add_argument("--json", action="store_true", help="write findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the drawing's text."""
    print(FORMATS[arguments.format](read_topology(arguments.file)), end="")
    return 0
