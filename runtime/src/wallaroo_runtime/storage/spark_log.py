"""Reads the logs in Spark's checkpoint, which have a file for each planned and for each committed micro-batch."""

from collections.abc import Iterable
from pathlib import Path


def last_batch(names: Iterable[str]) -> int:
    """Return the highest number of a micro-batch among names of files in a log; -1 if there is none.

    Example:
        >>> last_batch(["9", "10", ".11.crc", "metadata"]), last_batch([])
        (10, -1)
    """
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def latest_batch(log: Path) -> int:
    """Return the last micro-batch that has a file in a log; -1 if there is none."""
    return last_batch(path.name for path in log.glob("*"))


def last_commit(checkpoint: Path) -> int:
    """Return the last micro-batch that Spark has committed; -1 if there is none.

    Args:
        checkpoint: Directory of Spark's own checkpoint.
    """
    return latest_batch(checkpoint / "commits")


def pending_batch(checkpoint: Path) -> int | None:
    """Return the micro-batch that is planned and not committed; None if there is none.

    Args:
        checkpoint: Directory of Spark's own checkpoint.
    """
    planned, committed = latest_batch(checkpoint / "offsets"), last_commit(checkpoint)
    return planned if planned > committed else None
