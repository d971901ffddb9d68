"""Reads the topology file that a command names."""

import sys
from pathlib import Path

from wallaroo_runtime.deploy.application import read_file
from wallaroo_runtime.topology.load import MAX_DOCUMENT_BYTES, load
from wallaroo_runtime.topology.model import Topology


def read_topology(name: str) -> Topology:
    """Read and check a topology file, `-` for stdin.

    Raises:
        RunError: R616, it cannot be read; or every finding about the document.
    """
    return load(sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1) if name == "-" else read_file(Path(name)))
