"""Numbers of bytes on the command line, and the options of `run` that take them."""

import argparse
import re

from wallaroo_runtime.gateway.config import FSYNC_POLICIES
from wallaroo_runtime.peer.limits import Bounds

UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
MAX_BYTES = (1 << 63) - 1


def size_of(text: str) -> int:
    """Read a number of bytes.

    Raises:
        ArgumentTypeError: It is none.

    Example:
        >>> size_of("512"), size_of("64MiB"), shown(64 << 20)
        (512, 67108864, '64MiB')
    """
    found = re.fullmatch(r"([0-9]{1,19}) ?(|[KMGT]iB)", text)
    if not found or int(found[1]) * UNITS[found[2]] > MAX_BYTES:
        reason = f"{text!r} is not a number of bytes, e.g. 1000000 or 64MiB"
        raise argparse.ArgumentTypeError(reason)
    return int(found[1]) * UNITS[found[2]]


def shown(size: int) -> str:
    """Return a number of bytes as `size_of` reads it, in the largest unit that fits."""
    unit = [name for name, factor in UNITS.items() if size % factor == 0][-1] if size else ""
    return f"{size // UNITS[unit]}{unit}"


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Declare the options that become `Bounds`."""
    defaults = Bounds()
    add = parser.add_argument
    add("--journal-fsync", choices=FSYNC_POLICIES, default=defaults.journal_fsync, help="default: %(default)s, 50 ms")

    def add_size(name: str, default: int, what: str) -> None:
        add(name, type=size_of, default=default, metavar="SIZE", help=f"{what}; default: {shown(default)}")

    add_size("--max-journal-bytes", defaults.journal_bytes, "stop reading sources when so much waits to be processed")
    add_size("--max-outbox-bytes", defaults.outbox_bytes, "pause when so much output waits for the sinks")
    add_size("--state-cache-bytes", defaults.state_cache_bytes, "state that each worker keeps in memory")


def bounds_of(arguments: argparse.Namespace) -> Bounds:
    """Return what the options say."""
    return Bounds(
        journal_fsync=arguments.journal_fsync,
        journal_bytes=arguments.max_journal_bytes,
        outbox_bytes=arguments.max_outbox_bytes,
        state_cache_bytes=arguments.state_cache_bytes,
    )
