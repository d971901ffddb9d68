"""Reads the topology that a command names: from a file, a program or an archive."""

import argparse
import sys
from pathlib import Path

from wallaroo_runtime.cli.option import Split, extracted
from wallaroo_runtime.errors import findings_in
from wallaroo_runtime.program.application import load_application, read_file
from wallaroo_runtime.topology.load import MAX_DOCUMENT_BYTES, load
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.override import override

WHAT = "topology file, - for stdin, or what `run` takes: a program, a worker binary, an archive"
VISIBLE = {"--in": True, "-i": True, "--out": True, "-o": True}


def add_app_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that are passed to a program's own command line."""
    add = parser.add_argument
    add("--in", "-i", dest="inputs", default="", metavar="H:P,...", help="passed to the program, like all after --")
    add("--out", "-o", dest="outputs", default="", metavar="H:P,...", help="passed to the program")


def split_document(tokens: list[str]) -> Split:
    """Separate the command's own arguments from those for the program.

    Example:
        >>> parts = split_document(["app.py", "--in", "h:1", "--json", "--", "--depth", "3"])
        >>> parts.own, parts.app
        (['app.py', '--in', 'h:1', '--json'], ['--in', 'h:1', '--depth', '3'])
    """
    end = tokens.index("--") if "--" in tokens else len(tokens)
    visible, _ = extracted(tokens[:end], VISIBLE)
    return Split(own=tokens[:end], app=visible + tokens[end + 1 :])


def read_topology(name: str, arguments: argparse.Namespace) -> Topology:
    """Read and check the topology that a command names.

    Args:
        name: A topology file, `-` for stdin, or an application as for `run`.
        arguments: The command line, with the options of `add_app_options`.

    Raises:
        RunError: R616 if a file cannot be read; R609 if there is no such application; or every finding about the
            topology, with the file's name.
    """
    if name == "-":
        return load(sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1))
    path = Path(name)
    if not is_document(path):
        return load_application(name, arguments.parts.app, arguments.inputs, arguments.outputs).topology
    document = read_file(path)
    with findings_in(name):
        return override(load(document), arguments.inputs, arguments.outputs)


def is_document(path: Path) -> bool:
    """Return whether a file is a topology document. If not, it is a program or an archive."""
    if path.suffix == ".json" or not path.is_file():
        return path.suffix == ".json"
    with path.open("rb") as file:
        return file.read(1) == b"{"
