"""Reads the topology file that a command names."""

import sys
from dataclasses import replace
from pathlib import Path

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.application import read_file
from wallaroo_runtime.topology.load import MAX_DOCUMENT_BYTES, load
from wallaroo_runtime.topology.model import Topology


def read_topology(name: str) -> Topology:
    """Read and check a topology file, `-` for stdin.

    Raises:
        RunError: R616, it cannot be read; or every finding about the document, with the file's name.
    """
    if name == "-":
        return load(sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1))
    document = read_file(Path(name))
    try:
        return load(document)
    except RunError as error:
        named = [finding if finding.file else replace(finding, file=name) for finding in error.diagnostics]
        raise RunError(named, error.exit_code) from error
