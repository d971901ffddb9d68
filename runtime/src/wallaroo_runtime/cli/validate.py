"""`wallaroo validate FILE|APP`: check a topology, and whether its workers were made for this topology."""

import argparse
from typing import Any

from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo_runtime.cli.document import WHAT, add_app_options, read_topology, split_document
from wallaroo_runtime.cli.exit_code import exit_code
from wallaroo_runtime.console.json_line import print_json, print_result
from wallaroo_runtime.errors import TOPOLOGY, WORKER, count
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.program.application import check_interface
from wallaroo_runtime.topology.canonical import interface_hash

split_arguments = split_document


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("validate", help="check a topology or an application", description=__doc__)
    parser.add_argument("file", metavar="FILE|APP", help=WHAT)
    add_app_options(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object, or one a line for each finding")


def run(arguments: argparse.Namespace) -> int:
    """Check a topology or an application, and print the findings about it to stdout: they are the command's result.

    Raises:
        DiagnosticError: The command was used wrongly, or something else than the application prevents the check.
    """
    try:
        return _check(arguments)
    except DiagnosticError as error:
        code = exit_code(error)
        if code not in (TOPOLOGY, WORKER):
            raise
        for finding in error.diagnostics:
            print_result(finding.to_json(), str(finding), as_json=arguments.json)
        return code


def _check(arguments: argparse.Namespace) -> int:
    topology = read_topology(arguments.file, arguments)
    compile_topology(topology, shuffle_partitions=1)
    check_interface(topology)
    parts = {"source": topology.sources(), "step": topology.steps(), "sink": topology.sinks()}
    counts = {noun: sum(1 for _ in items) for noun, items in parts.items()}
    if arguments.json:
        numbers = {f"{noun}s": number for noun, number in counts.items()}
        report = {"application": topology.name, **numbers, "interface_hash": interface_hash(topology)}
        print_json(report)
    else:
        text = ", ".join(count(number, noun) for noun, number in counts.items())
        print(f'application "{topology.name}" is correct: {text}')
    return 0
