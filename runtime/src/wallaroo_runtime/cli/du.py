"""`wallaroo du`: what lies in the state and cache directories of this user, the largest first."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.directory import MANIFEST, state_directory
from wallaroo_runtime.cli.reporter import printable
from wallaroo_runtime.cli.stamp import print_json
from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.disk import measure

TABLE = "{:>16}  {:<10}  {:<8}  {:<10}  {}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A directory or file of this user's.

    Attributes:
        kind: `checkpoint`, `cache`, which is made or fetched again when it is gone, or `other`.
        bytes: What its files take on the disk.
        state: Of a checkpoint, `running` or `stopped`; else empty.
        changed: When something in it was last changed, in seconds since 1970.
    """

    kind: str
    path: Path
    bytes: int
    state: str
    changed: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        changed = datetime.fromtimestamp(self.changed, timezone.utc).isoformat(timespec="seconds")
        return {"kind": self.kind, "path": str(self.path), "bytes": self.bytes, "state": self.state, "changed": changed}


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("du", help="show what checkpoints and caches take", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the entries, and for people their sum."""
    found = sorted(entries(), key=lambda entry: (-entry.bytes, entry.path))
    if arguments.json:
        for entry in found:
            print_json(entry.to_json())
        return 0
    print(TABLE.format("bytes", "kind", "state", "changed", "path"))
    for entry in found:
        row = entry.to_json()
        print(printable(TABLE.format(f"{entry.bytes:,}", entry.kind, entry.state, row["changed"][:10], entry.path)))
    print(TABLE.format(f"{sum(entry.bytes for entry in found):,}", "", "", "", "in all").rstrip())
    return 0


def entries() -> Iterator[Entry]:
    """Yield what lies in both directories."""
    from wallaroo_runtime.monitor.endpoint import driver_of  # late: it imports a client of HTTP

    for path in _children(state_directory()):
        is_checkpoint = (path / MANIFEST).is_file()
        state = ("stopped" if driver_of(path) is None else "running") if is_checkpoint else ""
        size, changed = measure(path)
        yield Entry("checkpoint" if is_checkpoint else "other", path, size, state, changed)
    for path in _children(cache_directory()):
        size, changed = measure(path)
        yield Entry("cache", path, size, "", changed)


def _children(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []
