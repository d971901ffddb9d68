"""The topology document: read, checked, as values."""

from wallaroo_runtime.topology.load import load
from wallaroo_runtime.topology.model import Topology

__all__ = ["Topology", "load"]
