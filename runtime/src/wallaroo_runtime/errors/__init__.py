"""What ends a command, and with which exit code."""

from wallaroo_runtime.errors.error import RUN, TOPOLOGY, USAGE, WORKER, RunError

__all__ = ["RUN", "TOPOLOGY", "USAGE", "WORKER", "RunError"]
