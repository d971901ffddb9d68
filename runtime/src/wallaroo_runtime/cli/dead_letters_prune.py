"""`wallaroo dead-letters prune`."""

import argparse
import re
import sys
import time
from pathlib import Path

from wallaroo_runtime.checkpoint.dead_letter import StoredLetter, is_chosen
from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.maintenance.prune import prune

OF_LAST_RUN = (
    "{count} of them are of the last run in real-time mode, which may write them again; "
    "prune again once another run has begun"
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def declare_prune(parser: argparse.ArgumentParser) -> None:
    """Declare the options that only `prune` has."""
    parser.add_argument("--older-than", type=_age, metavar="AGE", help="only older letters, e.g. than 90s, 12h or 7d")
    parser.add_argument("--replayed", action="store_true", help="only replayed letters")
    parser.add_argument("--all", action="store_true", help="every letter; needed without other conditions")
    parser.add_argument("--dry-run", action="store_true", help="only count the letters")
    parser.add_argument("--json", action="store_true", help="counts as a JSON object; findings as a JSON array")


def run_prune(checkpoint: Path, arguments: argparse.Namespace) -> int:
    """Remove the letters that the arguments choose, and print the numbers."""
    has_age = arguments.older_than is not None
    if arguments.all == bool(arguments.code or arguments.step or has_age or arguments.replayed):
        reason = "--all leaves no use for a choice" if arguments.all else "prune needs a choice, or --all"
        fix = "give --step, --code, --older-than or --replayed, or --all alone"
        raise wrong_usage(reason=reason, fix=fix)
    concerns = is_chosen(arguments.code, arguments.step)
    before = time.time() - arguments.older_than if has_age else float("inf")

    def choose(letter: StoredLetter, is_replayed: bool) -> bool:
        is_wanted = is_replayed or not arguments.replayed
        return is_wanted and letter.written < before and concerns(letter.record)

    result = prune(checkpoint, choose, dry_run=arguments.dry_run)
    if arguments.json:
        counts = {"removed": result.removed, "kept": result.kept, "kept_of_last_run": result.of_last_run}
        print_json({**counts, "bytes": result.bytes, "dry_run": arguments.dry_run})
    else:
        verb = "would be removed" if arguments.dry_run else f"removed, {result.bytes:,} bytes"
        print(f"{result.removed} {verb}; {result.kept} kept", file=sys.stderr)
        if result.of_last_run:
            print(OF_LAST_RUN.format(count=result.of_last_run), file=sys.stderr)
    return 0


def _age(text: str) -> int:
    """Return an age of a command line in seconds.

    Example:
        >>> _age("90s"), _age("7d")
        (90, 604800)
    """
    parts = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if parts is None:
        message = f"{text!r} is no age; write e.g. 90s, 30m, 12h or 7d"
        raise argparse.ArgumentTypeError(message)
    return int(parts[1]) * _SECONDS[parts[2]]
