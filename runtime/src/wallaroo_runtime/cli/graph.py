"""`wallaroo graph FILE|APP`: draw a topology as a Mermaid flowchart."""

import argparse
from typing import Any

from wallaroo_runtime.cli.document import WHAT, add_app_options, read_topology, split_document
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.plan.graph import mermaid

split_arguments = split_document


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("graph", help="draw a topology as a Mermaid flowchart", description=__doc__)
    parser.add_argument("file", metavar="FILE|APP", help=WHAT)
    add_app_options(parser)
    parser.add_argument("--json", action="store_true", help="a JSON object with the text; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the graph of a topology as text for a drawing program."""
    text = mermaid(read_topology(arguments.file, arguments))
    if arguments.json:
        print_json({"text": text})
    else:
        print(text, end="")
    return 0
