"""Marks in the logs of a checkpoint where a run begins, and where its end begins."""

import re
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from wallaroo_runtime.durable.file import private

SPARK_LOG, SPARK_OUT = "spark.log", "spark.out"  # each run begins a new spark.log
BEGAN, STOPS = "--- run began ", "--- run stops "
BEGIN = re.compile(rf"{BEGAN}[0-9]{{4}}-[0-9-]{{5}}T[0-9:.]{{12}}Z ---")


def mark_begin(folder: Path) -> None:
    """Write a line into Spark's log and all existing logs: a run begins. Logs without this line begin in this run."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _mark([*folder.glob("*.log"), *folder.glob("*.out"), folder / SPARK_LOG], BEGAN)


def mark_stop(folder: Path) -> None:
    """Write a line into Spark's logs: the run is being ended, so later errors of Spark are no failures."""
    _mark([path for name in (SPARK_LOG, SPARK_OUT) if (path := folder / name).exists()], STOPS)


def is_begin(line: str) -> bool:
    """Return whether a line says that a run begins.

    Example:
        >>> is_begin("--- run began 2026-01-02T03:04:05.678Z ---"), is_begin("--- run began at last")
        (True, False)
    """
    return BEGIN.fullmatch(line) is not None


def _mark(paths: list[Path], what: str) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    for path in set(paths):
        # A full disk, or a log that this user may not write, is reported by other parts of the run.
        with suppress(OSError), open(path, "ab", opener=private) as file:
            file.write(f"{_line_end(path)}{what}{now} ---\n".encode())


def _line_end(path: Path) -> str:
    """Return a line break if the last line of a log has none (a killed process wrote it); else an empty result."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return ""
        file.seek(-1, 2)
        return "" if file.read() == b"\n" else "\n"
