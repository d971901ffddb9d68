"""`wallaroo emit APP`: print the topology of a program."""

import argparse
import sys
from functools import partial
from typing import Any

from wallaroo_runtime.cli.option import split, tell_split
from wallaroo_runtime.cli.parser import app_of
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.topology.canonical import canonical_text

split_arguments = partial(split, used=frozenset({"--json"}))


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "emit", help="print the topology of a program", usage="wallaroo emit APP [APP ARGS]", description=__doc__
    )
    parser.add_argument("app", metavar="APP", nargs="?", help="Python file or module, Go directory, worker binary")
    parser.add_argument("--in", "-i", dest="inputs", default="", metavar="H:P,...", help="passed to the application")
    parser.add_argument("--out", "-o", dest="outputs", default="", metavar="H:P,...", help="passed to the application")
    parser.add_argument("--json", action="store_true", help="write findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the checked topology to stdout, without any output of the program."""
    tell_split(arguments.parts)
    app = app_of(arguments, "wallaroo emit")
    topology = load_application(app, arguments.parts.app, arguments.inputs, arguments.outputs).topology
    sys.stdout.buffer.write(canonical_text(topology.document).encode("utf-8"))
    sys.stdout.buffer.flush()
    return 0
