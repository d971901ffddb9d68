"""`wallaroo complete PARTIAL.json`: add paths, defaults and hashes to a topology that was written by hand."""

import argparse
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from wallaroo_runtime.errors import RUN, RunError, findings_in
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.program.application import check_interface, read_file
from wallaroo_runtime.topology.canonical import canonical_text
from wallaroo_runtime.topology.complete import complete
from wallaroo_runtime.topology.load import MAX_DOCUMENT_BYTES
from wallaroo_runtime.topology.model import Topology


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("complete", help="complete a topology that was written by hand", description=__doc__)
    parser.add_argument("file", metavar="PARTIAL", help="topology file, - for stdin; its content is kept")
    parser.add_argument("-o", "--output", metavar="FILE", help="where it goes, PARTIAL itself too; default: stdout")
    parser.add_argument("--json", action="store_true", help="write findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the completed topology, after the checks of `wallaroo validate`."""
    topology = _completed(arguments.file)
    compile_topology(topology, shuffle_partitions=1)
    check_interface(topology)
    text = canonical_text(topology.document).encode("utf-8")
    if arguments.output is None:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        return 0
    try:
        Path(arguments.output).write_bytes(text)
    except OSError as error:
        raise RunError.of(
            "R616", RUN, path=arguments.output, done="written", reason=error.strerror or str(error)
        ) from error
    return 0


def _completed(name: str) -> Topology:
    sdk = version("wallaroo-spark-runtime")
    if name == "-":
        return complete(sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1), str(Path.cwd()), sdk)
    path = Path(name)
    data = read_file(path)
    with findings_in(name):
        return complete(data, str(path.absolute().parent), sdk)
