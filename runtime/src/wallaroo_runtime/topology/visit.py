"""The visits that an application takes."""

from wallaroo_runtime.topology.model import Topology


def visit_names(topology: Topology) -> list[str]:
    """Return the names of the visits that state computations take, each once."""
    return sorted({name for step in topology.steps() for name in step.visits})
