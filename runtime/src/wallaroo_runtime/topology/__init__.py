"""Reads and checks the topology document, and represents it as values."""

from wallaroo_runtime.topology.load import load
from wallaroo_runtime.topology.model import Topology

__all__ = ["Topology", "load"]
