"""`wallaroo state convert`: takes a checkpoint from micro-batches to real-time mode, or back."""

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from wallaroo_runtime.checkpoint.directory import find_directory
from wallaroo_runtime.checkpoint.manifest import MODES, REALTIME, Manifest, read_manifest
from wallaroo_runtime.cli.conf import MAX_PARTITIONS
from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.cli.run import location_of
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.plan.explain import count

if TYPE_CHECKING:
    from wallaroo_runtime.maintenance.rescale import Rescaled

MAX_BUCKETS = 1024
OTHER = "run it as before; a new --checkpoint, with a gateway and an egress of its own, begins in the other mode"


def add_convert(actions: Any) -> None:
    """Declare the arguments of the action."""
    action = actions.add_parser("convert", help="take the checkpoint to the other mode of `run --mode`")
    add = action.add_argument
    add("checkpoint", metavar="CHECKPOINT|APP", help="checkpoint directory, or the application; it must not run now")
    add("--to", choices=MODES, required=True, help="the `run --mode` from now on")
    what = "default: as before real-time mode, else as of a new checkpoint"
    add("--partitions", type=int, metavar="N", help=f"shuffle partitions of micro-batches; {what}")
    add("--buckets", type=int, metavar="M", help=f"buckets of each partition, or of real-time mode; {what}")
    add("--json", action="store_true", help="the result as a JSON object; findings as a JSON array")


def run_convert(arguments: argparse.Namespace) -> int:
    """Convert, and print the moved states.

    Raises:
        RunError: R608, numbers that would change nothing; R755, the application cannot run in real-time mode; as
            `convert`.
    """
    # Late: they import gRPC.
    from wallaroo_runtime.maintenance.rescalable import refused
    from wallaroo_runtime.maintenance.rescale import convert

    mode, numbers = arguments.to, (arguments.partitions, arguments.buckets)
    check_numbers(*numbers)
    if mode == REALTIME and arguments.partitions is not None:
        raise wrong_usage(reason="real-time mode has one partition", fix="leave out --partitions")
    if location_of(arguments):
        raise refused(arguments.checkpoint, mode, "it is at a URL", OTHER)
    begun = time.monotonic()
    path = find_directory(arguments.checkpoint)
    manifest = read_manifest(path)
    if manifest.services:
        raise refused(path, mode, "its journal or its outbox is at a remote service", OTHER)
    if mode == REALTIME:
        _check_application(manifest)
    if numbers != (None, None) and manifest.mode == mode:
        named = zip(("--partitions", "--buckets"), numbers, strict=True)
        options = " ".join(f"{option} {number}" for option, number in named if number is not None)
        reason = f"checkpoint {path} has the mode {mode} already; its numbers stay"
        raise wrong_usage(reason=reason, fix=f"change them with `wallaroo state rescale {path} {options}`")
    done = convert(path, mode, *numbers)
    seconds = time.monotonic() - begun
    if arguments.json:
        print_json({**asdict(done), "seconds": round(seconds, 3)})
    else:
        print(told(done, seconds))
    return 0


def _check_application(manifest: Manifest) -> None:
    """Refuse an application that `run --mode realtime` refuses."""
    # Late: they import much.
    from wallaroo_runtime.maintenance.rescale import HERE
    from wallaroo_runtime.peer.remote import RemoteOptions
    from wallaroo_runtime.run.realtime import check_realtime

    check_realtime(manifest.load(), master=HERE, remote=RemoteOptions())


def check_numbers(partitions: int | None, buckets: int | None) -> None:
    """Refuse numbers of partitions and buckets that cannot be.

    Args:
        partitions: Given; None: not given.
        buckets: Likewise.

    Raises:
        RunError: R608.
    """
    for option, number, most in (("--partitions", partitions, MAX_PARTITIONS), ("--buckets", buckets, MAX_BUCKETS)):
        if number is not None and not 0 < number <= most:
            reason = f"{option} {number} is not possible"
            raise wrong_usage(reason=reason, fix=f"give 1 to {most}")


def told(done: "Rescaled", seconds: float) -> str:
    """Return the summary of a conversion, in words.

    Example:
        >>> from wallaroo_runtime.maintenance.rescale import Rescaled
        >>> print(told(Rescaled(("microbatch", "realtime"), (2, 1), (4, 8), 1200, 34567), 8.04))
        run it with --mode realtime now, 8 buckets; moved the states of 1,200 keys, 34,567 bytes, in 8.0 s
        >>> print(told(Rescaled(("realtime", "microbatch"), (1, 2), (8, 4)), 3))
        run it with --mode microbatch now, 2 shuffle partitions of 4 buckets; no state to move, in 3.0 s
        >>> print(told(Rescaled(("realtime", "microbatch"), (1, 1), (8, 1)), 3))
        run it with --mode microbatch now, 1 shuffle partition of 1 bucket; no state to move, in 3.0 s
    """
    before, mode = done.modes
    if before == mode:
        return f"its mode is {mode}, as before; nothing to do"
    numbers = count(done.buckets[1], "bucket")
    if mode != REALTIME:
        numbers = f"{count(done.partitions[1], 'shuffle partition')} of {numbers}"
    moved = f"moved the states of {done.keys:,} keys, {done.state_bytes:,} bytes," if done.keys else "no state to move,"
    return f"run it with --mode {mode} now, {numbers}; {moved} in {seconds:.1f} s"
