"""`wallaroo state`: show the states of a checkpoint, and change its mode, partitions and buckets."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from wallaroo_runtime.checkpoint.directory import find_directory
from wallaroo_runtime.checkpoint.manifest import MODES, REALTIME, read_manifest
from wallaroo_runtime.cli.conf import MAX_PARTITIONS, conf_of
from wallaroo_runtime.cli.gateway_option import remote_of
from wallaroo_runtime.cli.parser import Parser, whole, wrong_usage
from wallaroo_runtime.cli.run import location_of
from wallaroo_runtime.cli.run_option import SERVICES, add_options
from wallaroo_runtime.console.json_line import print_json, print_result
from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.console.table import number, print_table, text
from wallaroo_runtime.errors import count
from wallaroo_runtime.maintenance.rescale import HERE, Rescaled, Wanted, rescale, rescale_at
from wallaroo_runtime.program.app import is_archive
from wallaroo_runtime.system.stop import Ended

if TYPE_CHECKING:
    from wallaroo_runtime.spark.state_store.state_query import StateQuery

MAX_BUCKETS = 1024
COLUMNS = (text("state", 24), text("worker", 12), number("keys", 12), number("bytes", 14))
KEY_HELP = "as text, as `0x` and hexadecimal digits, or a number"


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("state", help="show and divide the state of a checkpoint", description=__doc__)
    names = "ls|get|dump|rescale"
    actions = parser.add_subparsers(dest="action", metavar=names, parser_class=Parser, required=True)
    add_queries(actions)
    action = actions.add_parser("rescale", help="change the mode, or the numbers of shuffle partitions and buckets")
    add = action.add_argument
    add("checkpoint", metavar="CHECKPOINT|APP", help="checkpoint directory, or the application; it must not run now")
    add("--mode", choices=MODES, help="that of `run` from now on")
    what = "number of shuffle partitions of micro-batches; after real-time mode: as before it"
    add("--partitions", type=whole(1, MAX_PARTITIONS), metavar="N", help=what)
    what = "a new checkpoint has 4, and in real-time mode 8 of its one partition"
    add("--buckets", type=whole(1, MAX_BUCKETS), metavar="M", help=f"buckets of each partition; {what}")
    add(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark; for a checkpoint at a URL",
    )
    add_options(action, group=SERVICES)
    add("--json", action="store_true", help="the result as a JSON object; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Run the action that the command line names."""
    return (_rescale if arguments.action == "rescale" else show_states)(arguments)


def _rescale(arguments: argparse.Namespace) -> int:
    """Rescale a checkpoint, and print the result."""
    wanted = Wanted(arguments.mode, arguments.partitions, arguments.buckets)
    if wanted == Wanted():
        raise wrong_usage(reason="nothing says what shall change", fix="give --mode, --partitions or --buckets")
    begun = time.monotonic()
    try:
        done = _done(arguments, wanted, lambda: _note("rescaling; the checkpoint changes at the end", arguments))
    except (Ended, KeyboardInterrupt):
        _note("stopped; the checkpoint is as before, or rescaled: give the command again", arguments)
        raise
    seconds = time.monotonic() - begun
    print_result({**asdict(done), "seconds": round(seconds, 3)}, told(done, seconds), as_json=arguments.json)
    return 0


def _done(arguments: argparse.Namespace, wanted: Wanted, tell: Callable[[], None]) -> Rescaled:
    if location := location_of(arguments):
        conf = conf_of(arguments.conf)
        return rescale_at(location, wanted, remote_of(arguments, conf), conf, tell)
    path = find_directory(arguments.checkpoint)
    if wanted.mode == REALTIME:
        from wallaroo_runtime.peer.remote import RemoteOptions  # late import: this imports gRPC
        from wallaroo_runtime.run.realtime import check_realtime

        check_realtime(read_manifest(path).load(), master=HERE, remote=RemoteOptions())
    return rescale(path, wanted, tell)


def _note(text: str, arguments: argparse.Namespace) -> None:
    if not arguments.json:
        print(text, file=sys.stderr, flush=True)


def told(done: Rescaled, seconds: float) -> str:
    """Return the summary of a rescale, in words.

    Example:
        >>> SAME = "microbatch", "microbatch"
        >>> print(told(Rescaled(SAME, (2, 8), (4, 4), 1200, 34567), 5.25))
        8 shuffle partitions of 4 buckets, were 2 of 4; moved the states of 1,200 keys, 34,567 bytes, in 5.2 s
        >>> print(told(Rescaled(SAME, (1, 1), (8, 16), 0, 0), 3))
        1 shuffle partition of 16 buckets, were 1 of 8; no state to move, in 3.0 s
        >>> print(told(Rescaled(SAME, (1, 1), (1, 1), 0, 0), 3))
        1 shuffle partition of 1 bucket, as before; nothing to do
        >>> print(told(Rescaled(("microbatch", "realtime"), (2, 1), (4, 8), 1200, 34567), 8.04))
        run it with --mode realtime now; 1 shuffle partition of 8 buckets, were 2 of 4; \
moved the states of 1,200 keys, 34,567 bytes, in 8.0 s
    """
    (before, mode), (old, new), (old_buckets, new_buckets) = done.modes, done.partitions, done.buckets
    now = f"{count(new, 'shuffle partition')} of {count(new_buckets, 'bucket')}"
    if (before, old, old_buckets) == (mode, new, new_buckets):
        return f"{now}, as before; nothing to do"
    now = now if before == mode else f"run it with --mode {mode} now; {now}"
    moved = f"moved the states of {done.keys:,} keys, {done.state_bytes:,} bytes," if done.keys else "no state to move,"
    return f"{now}, were {old:,} of {old_buckets:,}; {moved} in {seconds:.1f} s"


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
    named, raw = arguments.checkpoint, arguments.action == "ls" or arguments.raw
    archive = None if raw else read_workers(arguments.archive or (named if is_archive(Path(named)) else ""))
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
