"""What follows from the address of the Spark master."""

import os
import re

CLUSTER_PARTITIONS = 16


def cores(master: str) -> int | None:
    """Return how many tasks run at once on a local master; None on a cluster, where only Spark knows.

    Example:
        >>> cores("local"), cores("local[3]"), cores("spark://host:7077")
        (1, 3, None)
    """
    if master == "local":
        return 1
    local = re.fullmatch(r"local\[(\*|[1-9][0-9]*)(?:,\s*[0-9]+)?\]", master)
    if local is None:
        return None
    return len(os.sched_getaffinity(0)) if local[1] == "*" else int(local[1])


def shuffle_partitions(master: str) -> int:
    """Return how many shuffle partitions a new checkpoint gets: one for each core of a local master."""
    return cores(master) or CLUSTER_PARTITIONS
