"""`wallaroo gc`: remove unused entries of this user's state and cache directories, and nothing that is in use."""

import argparse
from typing import TYPE_CHECKING, Any

from wallaroo_runtime.cli.parser import amount
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.console.table import Table, number, place, table, text
from wallaroo_runtime.errors import RunError

if TYPE_CHECKING:
    from wallaroo_runtime.maintenance.gc import Unused

COLUMNS = (number("bytes", 16), text("kind", 10), text("why", 28), place("path"))
DAYS = 30.0


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("gc", help="remove unused caches and leftovers", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="only list the entries to remove")
    age, what = amount("number of days", "30"), "only what was not used for DAYS; default: 30"
    parser.add_argument("--older-than", type=age, default=DAYS, metavar="DAYS", help=what)
    parser.add_argument(
        "--checkpoints", action="store_true", help="also checkpoints of applications: they cannot be made again"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Find unused entries, print them, and remove them unless this is a dry run."""
    from wallaroo_runtime.maintenance.gc import find_unused  # late import: it needs an HTTP client

    total, left = 0, list[str]()
    entries = list(find_unused(arguments.older_than, checkpoints=arguments.checkpoints))
    freed = "would be freed" if arguments.dry_run else "freed"
    sums = (f"{sum(entry.bytes for entry in entries):,}", "", freed, "")
    shown = table(COLUMNS, [*map(_row, entries), sums])
    if not arguments.json:
        _print(shown.head())
    for entry in entries:
        try:
            is_done = _collect(entry, arguments.dry_run)
        except OSError as error:
            left.append(f"{entry.path}: {error.strerror or error}")
            continue
        if is_done:
            total += entry.bytes
            _tell(entry, shown, arguments)
    if not arguments.json:
        _print(shown.lines((f"{total:,}", "", freed, "")))
    if left:
        raise RunError.of("R616", path="; ".join(left[:-1]) or "all", done="removed", reason=left[-1])
    return 0


def _collect(entry: "Unused", is_dry: bool) -> bool:
    """Remove an entry, except in a dry run. Return False if a process uses the entry after all."""
    from wallaroo_runtime.maintenance.gc import held, remove

    with held(entry) as is_free:
        if is_free and not is_dry:
            remove(entry.path)
        return is_free


def _row(entry: "Unused") -> tuple[str, ...]:
    return f"{entry.bytes:,}", entry.kind, entry.reason, str(entry.path)


def _tell(entry: "Unused", shown: Table, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json({**entry.to_json(), "removed": not arguments.dry_run})
    else:
        _print(shown.lines(_row(entry)))


def _print(lines: list[str]) -> None:
    for line in lines:
        print(line)
