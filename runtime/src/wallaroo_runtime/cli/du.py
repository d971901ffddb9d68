"""`wallaroo du [CHECKPOINT|APP]`: what lies in the user's state and cache directories, or in one checkpoint."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.directory import MANIFEST, find_directory, state_directory
from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.cli.run import URL
from wallaroo_runtime.cli.stamp import print_json
from wallaroo_runtime.cli.table import number, place, print_table, text
from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.disk import measure

COLUMNS = (number("bytes", 16), text("kind", 10), text("state", 8), text("changed", 10), place("path"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A directory or file of this user's.

    Attributes:
        kind: `checkpoint`, `part` of one, `cache`, which is made or fetched again when it is gone, or `other`.
        bytes: What its files take on the disk.
        changed: When something in it was last changed, in seconds since 1970.
        state: Of a checkpoint, `running` or `stopped`; else empty.
    """

    kind: str
    path: Path
    bytes: int
    changed: float
    state: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        changed = datetime.fromtimestamp(self.changed, timezone.utc).isoformat(timespec="seconds")
        return {"kind": self.kind, "path": str(self.path), "bytes": self.bytes, "state": self.state, "changed": changed}


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("du", help="show what checkpoints and caches take", description=__doc__)
    what = "a checkpoint directory, or what was run: show its parts; default: all checkpoints and caches"
    parser.add_argument("checkpoint", metavar="CHECKPOINT|APP", nargs="?", help=what)
    parser.add_argument("--json", action="store_true", help="one JSON object a line; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the entries, and for people the sum of all."""
    named = arguments.checkpoint
    if named and URL.match(named):
        raise wrong_usage(reason=f"{named} is at a URL", fix="use the tools of its file system, e.g. `hdfs dfs -du`")
    found = sorted(parts(find_directory(named)) if named else entries(), key=lambda entry: (-entry.bytes, entry.path))
    if arguments.json:
        for entry in found:
            print_json(entry.to_json())
        return 0
    rows = [
        (f"{entry.bytes:,}", entry.kind, entry.state, entry.to_json()["changed"][:10], str(entry.path))
        for entry in found
    ]
    if not named:
        rows.append((f"{sum(entry.bytes for entry in found):,}", "", "", "", "in all"))
    print_table(COLUMNS, rows)
    return 0


def entries() -> Iterator[Entry]:
    """Yield what lies in both directories."""
    for path in _children(state_directory()):
        yield _checkpoint(path) if (path / MANIFEST).is_file() else Entry("other", path, *measure(path))
    for path in _children(cache_directory()):
        yield Entry("cache", path, *measure(path))


def parts(checkpoint: Path) -> Iterator[Entry]:
    """Yield a checkpoint, and what lies in it; a file that two of its parts have counts in both."""
    yield _checkpoint(checkpoint)
    for path in _children(checkpoint):
        with suppress(FileNotFoundError):  # it runs
            yield Entry("part", path, *measure(path))


def _checkpoint(path: Path) -> Entry:
    from wallaroo_runtime.monitor.endpoint import driver_of  # late: it imports a client of HTTP

    return Entry("checkpoint", path, *measure(path), "stopped" if driver_of(path) is None else "running")


def _children(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []
