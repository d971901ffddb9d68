"""`wallaroo state ls|get|dump`: the states of a checkpoint after its last committed micro-batch."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from wallaroo_runtime.checkpoint.directory import find_directory
from wallaroo_runtime.cli.conf import conf_of
from wallaroo_runtime.cli.parser import whole, wrong_usage
from wallaroo_runtime.cli.run import location_of
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.console.table import number, print_table, text

if TYPE_CHECKING:
    from wallaroo_runtime.run.state_query import StateQuery

COLUMNS = (text("state", 24), text("worker", 12), number("keys", 12), number("bytes", 14))
KEY_HELP = "as text, as `0x` and hexadecimal digits, or a number"


def add_queries(actions: Any) -> None:
    """Declare the arguments of the three actions that show states."""
    listing = actions.add_parser("ls", help="list the states with their keys and bytes")
    getting = actions.add_parser("get", help="show the state of one key")
    dumping = actions.add_parser("dump", help="show the states of all keys, one a line")
    for action in (listing, getting, dumping):
        action.add_argument("checkpoint", metavar="CHECKPOINT|APP", help="checkpoint directory or URL, or application")
    listing.add_argument("name", metavar="NAME", nargs="?", default="", help="only this state")
    for action in (getting, dumping):
        action.add_argument("name", metavar="NAME", help="of the state, as `ls` shows it")
    getting.add_argument("key", metavar="KEY", help=KEY_HELP)
    dumping.add_argument("--prefix", metavar="KEY", default="", help="only keys that begin with KEY")
    dumping.add_argument("--after", metavar="KEY", default="", help="only keys after KEY, with --limit")
    dumping.add_argument("--limit", type=whole(1), metavar="N", help="the first N, in the order of their keys")
    for action in (getting, dumping):
        action.add_argument("--archive", metavar="FILE", default="", help="the packed application, if that was run")
        action.add_argument("--raw", action="store_true", help="the bytes of states in base64; starts no worker")
    for action in (listing, getting, dumping):
        action.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
        action.add_argument("--json", action="store_true", help="one JSON object a line; findings as a JSON array")


def show_states(arguments: argparse.Namespace) -> int:
    """Print the states that the command line asks for."""
    if arguments.action == "dump" and arguments.after and arguments.limit is None:
        reason = "--after is for pages, which have a limit: without one keys come bucket by bucket"
        raise wrong_usage(reason=reason, fix="give --limit, too")
    from wallaroo_runtime.run.offline_state import check_state, open_states, read_workers  # late: this imports gRPC

    checkpoint = location_of(arguments) or find_directory(arguments.checkpoint)
    raw = arguments.action == "ls" or arguments.raw
    archive = None if raw else read_workers(arguments.archive)
    if (arguments.name or arguments.action != "ls") and (files := files_of(checkpoint)) is not None:
        check_state(files, arguments.name, archive, raw=raw)
    if not arguments.json:
        print(f"starting Spark, which reads the states{_meanwhile(checkpoint, arguments)}", file=sys.stderr, flush=True)
    with open_states(checkpoint, conf_of(arguments.conf), raw=raw, archive=archive) as query:
        print_states(query, arguments)
    return 0


def files_of(checkpoint: Path | str) -> Path | None:
    """Return the directory of a checkpoint on this machine; None if only Spark can reach the checkpoint.

    Example:
        >>> files_of("hdfs://name/checkpoint") is None, files_of("file:///no%20such") is None, str(files_of("file:///"))
        (True, True, '/')
    """
    if isinstance(checkpoint, Path):
        return checkpoint
    url = urlsplit(checkpoint)
    path = Path(unquote(url.path))
    return path if url.scheme == "file" and not url.netloc and path.is_dir() else None


def _meanwhile(checkpoint: Path | str, arguments: argparse.Namespace) -> str:
    """Return the advice to ask the run's monitor, with its URL; empty if no run of the checkpoint has a monitor."""
    from wallaroo_runtime.monitor.endpoint import monitor_of  # late import: it needs an HTTP client

    url = monitor_of(checkpoint) if isinstance(checkpoint, Path) else ""
    if not url:
        return ""
    names = [quote(text, safe="") for text in (arguments.name, getattr(arguments, "key", "")) if text]
    parts = urlsplit(url)
    return f"; its run answers sooner: {parts._replace(path='/'.join(['/api/v1/state', *names])).geturl()}"


def print_states(query: "StateQuery", arguments: argparse.Namespace) -> None:
    """Query states. Print them to stdout, and the number of their micro-batch to stderr.

    Raises:
        RunError: R720 if there is no such state or key.
    """
    if arguments.action == "ls":
        batch, rows = query.listed(arguments.name)
        states = iter(rows)
    elif arguments.action == "get":
        batch, row = query.get(arguments.name, arguments.key)
        states = iter([row])
    else:
        batch, states = query.page(
            arguments.name, prefix=arguments.prefix, after=arguments.after, limit=arguments.limit
        )
    if arguments.action == "ls" and not arguments.json:
        cells = ((row["state"], row["worker"], f"{row['keys']:,}", f"{row['bytes']:,}") for row in states)
        print_table(COLUMNS, list(cells))
    for row in states:
        if arguments.json:
            print_json({**row, "batch": batch})
        else:
            print(_line(row, arguments.action))
    if not arguments.json:
        as_of = f"as of micro-batch {batch}" if batch >= 0 else "no micro-batch is committed yet"
        print(as_of, file=sys.stderr)


def _line(row: Mapping[str, Any], action: str) -> str:
    value = value_text(row)
    return value if action == "get" else f"{printable(row['key'])}\t{value}"


def value_text(row: Mapping[str, Any]) -> str:
    """Return the value of a state as one line for people.

    Example:
        >>> value_text({"value": {"sum": 7}}), value_text({"encoding": 17, "base64": "Nw=="}), value_text({"bytes": 9})
        ('{"sum": 7}', 'encoding 17, base64 Nw==', '(9 bytes, too many to show)')
    """
    if "value" in row:
        return json.dumps(row["value"])
    if "base64" in row:
        return f"encoding {row['encoding']}, base64 {row['base64']}"
    return f"({row['bytes']:,} bytes, too many to show)"
