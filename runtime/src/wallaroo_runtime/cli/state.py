"""`wallaroo state rescale`: give a checkpoint other numbers of shuffle partitions and buckets, while nothing runs."""

import argparse
import json
import time
from dataclasses import asdict
from typing import Any

from wallaroo_runtime.cli.parser import Parser, usage_error
from wallaroo_runtime.cli.run import MAX_PARTITIONS
from wallaroo_runtime.deploy.place import find_directory
from wallaroo_runtime.deploy.rescale import Rescaled, rescale
from wallaroo_runtime.errors import USAGE, RunError

MAX_BUCKETS = 1024


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("state", help="change how the state of a checkpoint is divided", description=__doc__)
    actions = parser.add_subparsers(dest="action", metavar="rescale", parser_class=Parser, required=True)
    action = actions.add_parser("rescale", help="change the number of shuffle partitions, or of buckets")
    add = action.add_argument
    add("checkpoint", metavar="CHECKPOINT|APP", help="checkpoint directory, or what was run; it must not run now")
    add("--partitions", type=int, metavar="N", help="shuffle partitions: tasks of a stage with state")
    add("--buckets", type=int, metavar="M", help="buckets of each partition; a new checkpoint has 4")
    add("--json", action="store_true", help="what was done as a JSON object; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Rescale, and say what was moved."""
    partitions, buckets = arguments.partitions, arguments.buckets
    _check("--partitions", partitions, MAX_PARTITIONS)
    _check("--buckets", buckets, MAX_BUCKETS)
    if partitions is None and buckets is None:
        reason = "nothing says what shall change"
        raise usage_error(reason, "", (), "give --partitions, or --buckets", "wallaroo state rescale")
    if "://" in arguments.checkpoint:
        reason = "only one in a directory of this machine can be"
        fix = "begin one with more: --fresh --conf spark.sql.shuffle.partitions=N"
        raise RunError.of("R663", USAGE, path=arguments.checkpoint, reason=reason, fix=fix)
    path = find_directory(arguments.checkpoint)
    begun = time.monotonic()
    done = rescale(path, partitions, buckets)
    seconds = time.monotonic() - begun
    if arguments.json:
        print(json.dumps({**asdict(done), "seconds": round(seconds, 3)}))
    else:
        print(told(done, seconds))
    return 0


def _check(option: str, number: int | None, most: int) -> None:
    if number is not None and not 0 < number <= most:
        reason = f"{option} {number} is not possible"
        raise usage_error(reason, "", (), f"give 1 to {most}", "wallaroo state rescale")


def told(done: Rescaled, seconds: float) -> str:
    """Return what was done, in words.

    Example:
        >>> print(told(Rescaled((2, 8), (4, 4), 1200, 34567), 5.25))
        8 shuffle partitions of 4 buckets, were 2 of 4; moved the states of 1,200 keys, 34,567 bytes, in 5.2 s
    """
    (old, new), (old_buckets, new_buckets) = done.partitions, done.buckets
    now = f"{new:,} shuffle partitions of {new_buckets:,} buckets"
    if (old, old_buckets) == (new, new_buckets):
        return f"{now}, as before; nothing to do"
    moved = f"moved the states of {done.keys:,} keys, {done.state_bytes:,} bytes," if done.keys else "no state to move,"
    return f"{now}, were {old:,} of {old_buckets:,}; {moved} in {seconds:.1f} s"
