"""`wallaroo state`: show the states of a checkpoint, and change its mode, partitions and buckets."""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from wallaroo_runtime.checkpoint.directory import find_directory
from wallaroo_runtime.checkpoint.manifest import MODES, REALTIME, read_manifest
from wallaroo_runtime.cli.conf import MAX_PARTITIONS, conf_of
from wallaroo_runtime.cli.gateway_option import remote_of
from wallaroo_runtime.cli.parser import Parser, whole, wrong_usage
from wallaroo_runtime.cli.run import location_of
from wallaroo_runtime.cli.run_option import SERVICES, add_options
from wallaroo_runtime.cli.state_query import add_queries, show_states
from wallaroo_runtime.console.json_line import print_result
from wallaroo_runtime.errors import count
from wallaroo_runtime.maintenance.rescale import HERE, Rescaled, Wanted, rescale, rescale_at
from wallaroo_runtime.system.stop import Ended

MAX_BUCKETS = 1024


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
