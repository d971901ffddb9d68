"""`wallaroo dead-letters`: list, show, replay and prune the messages that user code failed on."""

import argparse
import base64
import itertools
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.dead_letter import StoredLetter, find_letter, is_chosen, letter_folder, read_letters
from wallaroo_runtime.cli.parser import Parser, whole, wrong_usage
from wallaroo_runtime.console.json_line import print_json, print_result
from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.console.table import WHOLE, number, print_table, room, table, text
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.maintenance.prune_dead_letters import prune
from wallaroo_runtime.maintenance.replay import Replay, read_marks
from wallaroo_runtime.topology.dead_letter_text import record_words

COLUMNS = (
    text("id", 12, WHOLE),
    text("time", 24, WHOLE),
    text("code", 5, WHOLE),
    text("step", 20),
    text("key", 14, 8),
    number("position", 10),
    text("error", 40, 16),
    text("preview", 60, 8),
)
GROUPS = (
    number("count", 9),
    text("code", 5, WHOLE),
    text("step", 20),
    text("first id", 12, WHOLE),
    text("last id", 12, WHOLE),
    text("last time", 24, WHOLE),
    text("last error", 60, 16),
)
AHEAD = 1000  # number of letters that determine the widths
HEX_BYTES, HEX_COLUMNS = (16, 8, 4), 14  # bytes in a line; a line takes 14 columns, and 4 for each byte
OF_LAST_RUN = (
    "{count} of them are of the last run in real-time mode, which may write them again; "
    "prune again once another run has begun"
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "dead-letters", help="list, show, replay and prune messages that user code failed on", description=__doc__
    )
    actions = parser.add_subparsers(dest="action", metavar="ls|show|replay|prune", parser_class=Parser, required=True)
    listing = actions.add_parser("ls", help="list them, in the order of micro-batches")
    showing = actions.add_parser("show", help="show everything about one")
    replaying = actions.add_parser("replay", help="send payloads of failed decoders to their source again, after a fix")
    pruning = actions.add_parser("prune", help="remove dead letters; the application may run")
    for action in (listing, showing, replaying, pruning):
        action.add_argument(
            "checkpoint",
            metavar="CHECKPOINT|APP|DIR",
            help="checkpoint directory, the application, or the directory of `wallaroo egress`",
        )
    showing.add_argument("id", metavar="ID", help="as `ls` shows it")
    replaying.add_argument("ids", metavar="ID", nargs="*", help="as `ls` shows them")
    for action in (listing, replaying, pruning):
        action.add_argument("--code", metavar="C", default="", help="only with this error code, e.g. C505")
        action.add_argument("--step", metavar="NAME", default="", help="only of this source, step or sink")
    listing.add_argument("--group", action="store_true", help="one line for each step and code, with their number")
    listing.add_argument("--limit", type=whole(0), metavar="N", help="at most N")
    listing.add_argument("--json", action="store_true", help="one JSON object a line; findings as a JSON array")
    showing.add_argument("--json", action="store_true", help="as a JSON object, the input in base64")
    showing.add_argument("--input", metavar="FILE", help="write the input to FILE as it is, and show nothing")
    replaying.add_argument("--all", action="store_true", help="all letters that were not sent yet")
    replaying.add_argument(
        "--to", metavar="H:P", default="", help="send them there; default: where the running application listens"
    )
    replaying.add_argument("--again", action="store_true", help="also letters that were sent, or ran again, before")
    replaying.add_argument("--json", action="store_true", help="counts as a JSON object; findings as a JSON array")
    add = pruning.add_argument
    add("--older-than", type=_age, metavar="AGE", help="only older letters, e.g. than 90s, 12h or 7d")
    add("--replayed", action="store_true", help="only replayed letters")
    add("--all", action="store_true", help="every letter; needed without other conditions")
    add("--dry-run", action="store_true", help="only count the letters")
    add("--json", action="store_true", help="counts as a JSON object; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Run the action that the command line names."""
    checkpoint = letter_folder(arguments.checkpoint)
    actions = {"ls": _list, "show": _show, "replay": _replay, "prune": _prune}
    return actions[arguments.action](checkpoint, arguments)


def _list(checkpoint: Path, arguments: argparse.Namespace) -> int:
    if arguments.group:
        return _list_groups(checkpoint, arguments)
    marks = set(read_marks(checkpoint))
    letters = itertools.islice(_chosen(checkpoint, arguments), arguments.limit)
    if arguments.json:
        for letter in letters:
            print_json(_summary(letter, letter.id in marks))
        return 0
    rows = (_row(letter, letter.id in marks) for letter in letters)
    first = list(itertools.islice(rows, 0 if room() is None else AHEAD))
    shown = table(COLUMNS, first)
    for line in itertools.chain([shown.head], map(shown.line, itertools.chain(first, rows))):
        print(line)
    return 0


def _list_groups(checkpoint: Path, arguments: argparse.Namespace) -> int:
    groups: dict[tuple[str, str], list[Any]] = {}
    for letter in _chosen(checkpoint, arguments):
        group = groups.setdefault((letter.record.path, letter.record.code), [0, letter, letter])
        group[0], group[2] = group[0] + 1, letter
    rows = []
    largest = sorted(groups.values(), key=lambda group: -group[0])
    for count, first, last in itertools.islice(largest, arguments.limit):
        row = _summary(last, replayed=False)
        cells = {"count": count, "code": row["code"], "step": row["step"], "first": first.id, "last": last.id}
        cells |= {"time": row["time"], "error": row["error"]}
        if arguments.json:
            print_json(cells)
        else:
            rows.append([str(cell) for cell in cells.values()])
    if not arguments.json:
        print_table(GROUPS, rows)
    return 0


def _chosen(checkpoint: Path, arguments: argparse.Namespace) -> Iterator[StoredLetter]:
    choose = is_chosen(arguments.code, arguments.step)
    return (letter for letter in read_letters(checkpoint) if choose(letter.record))


def _show(checkpoint: Path, arguments: argparse.Namespace) -> int:
    letter = find_letter(checkpoint, arguments.id)
    record = letter.record
    if arguments.input is not None:
        try:
            Path(arguments.input).write_bytes(record.input)
        except OSError as error:
            reason = f"{arguments.input} cannot be written; {error.strerror or error}"
            raise RunError.of("R608", USAGE, reason=reason, fix="give another --input") from error
        return 0
    replayed = letter.id in set(read_marks(checkpoint))
    if arguments.json:
        more = {
            "path": record.path,
            "port": record.port,
            "traceback": record.traceback,
            "encoding": record.encoding,
            "input": {"base64": base64.b64encode(record.input).decode("ascii")},
        }
        print_json({**_summary(letter, replayed), **more})
        return 0
    summary = _summary(letter, replayed)
    del summary["record"]  # a line of its own shows it in words
    summary["replayed"] = "yes" if replayed else "no"
    for name, value in summary.items():
        if value == "":  # most decoders have no key
            continue
        print(f"{name:<9} {printable(str(value))}" + (f" ({record.path})" if name == "step" else ""))
    if origin := record_words(record):
        print(f"record    {printable(origin)}")
    if record.traceback:
        print("\ntraceback")
        print("\n".join(f"  {printable(line.expandtabs(4))}" for line in record.traceback.splitlines()))
    form = {0: "as received", 1: "framed"}.get(record.encoding, "in the worker's own form")
    print(f"\ninput, {len(record.input)} bytes, {form if '/sources/' in record.path else 'serialized'}")
    print("\n".join(f"  {line}" for line in shown_input(record.input, room())))
    return 0


def _replay(checkpoint: Path, arguments: argparse.Namespace) -> int:
    if bool(arguments.ids) == arguments.all:
        reason = "replay needs ids, or --all" if not arguments.all else "--all leaves no use for ids"
        raise wrong_usage(reason=reason, fix="give one of the two")
    replay = Replay(checkpoint, to=arguments.to, again=arguments.again)
    if arguments.all:
        letters = _chosen(checkpoint, arguments)
    else:
        choose = is_chosen(arguments.code, arguments.step)
        records = [find_letter(checkpoint, each) for each in dict.fromkeys(arguments.ids)]
        letters = (letter for letter in records if choose(letter.record))
    result = replay.run(letters)
    before = f", {result.before} were before (--again sends them once more)" if result.before else ""
    refused = f", {result.refused} cannot be" if result.refused else ""
    is_none = not (result.sent or result.before or result.refused)
    listed = f"`wallaroo dead-letters ls {shlex.quote(str(arguments.checkpoint))} --group`"
    none = f"; no dead letter is chosen, {listed} shows codes and steps" if is_none else ""
    counts = {"replayed": result.sent, "before": result.before, "refused": result.refused}
    print_result(counts, f"{result.sent} replayed{before}{refused}{none}", as_json=arguments.json)
    if result.findings:
        raise RunError(result.findings)
    return 0


def _prune(checkpoint: Path, arguments: argparse.Namespace) -> int:
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
    counts = {"removed": result.removed, "kept": result.kept, "kept_of_last_run": result.of_last_run}
    verb = "would be removed" if arguments.dry_run else f"removed, {result.bytes:,} bytes"
    values = {**counts, "bytes": result.bytes, "dry_run": arguments.dry_run}
    print_result(values, f"{result.removed} {verb}; {result.kept} kept", as_json=arguments.json)
    if result.of_last_run and not arguments.json:
        print(OF_LAST_RUN.format(count=result.of_last_run), file=sys.stderr)
    return 0


def _age(text: str) -> int:
    """Convert an age on a command line, e.g. `7d`, to seconds.

    Example:
        >>> _age("90s"), _age("7d")
        (90, 604800)
    """
    parts = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if parts is None:
        message = f"{text!r} is no age; write e.g. 90s, 30m, 12h or 7d"
        raise argparse.ArgumentTypeError(message)
    return int(parts[1]) * _SECONDS[parts[2]]


def _summary(letter: StoredLetter, replayed: bool) -> dict[str, Any]:
    return {**letter.summary(), "replayed": replayed}


def _row(letter: StoredLetter, replayed: bool) -> list[str]:
    *cells, preview = map(str, list(letter.summary().values())[:-1])
    return [*cells, f"(replayed) {preview}" if replayed else preview]


def shown_input(data: bytes, width: int | None = None) -> Iterator[str]:
    r"""Yield lines that show bytes: as text if possible, else as hexadecimal digits, 16 bytes in a line.

    Args:
        width: Width of the terminal; a narrow one gets 8 or 4 bytes a line. None if there is no terminal.

    Example:
        >>> list(shown_input(b"\x00\x01abc"))
        ['00000000  00 01 61 62 63                                   ..abc']
    """
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        lines = ["\0"]
    if all(line.replace("\t", " ").isprintable() for line in lines):
        yield from lines
        return
    count = next((each for each in HEX_BYTES if width is None or each * 4 + HEX_COLUMNS <= width), HEX_BYTES[-1])
    for start in range(0, len(data), count):
        part = data[start : start + count]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{start:08x}  {part.hex(' '):<{3 * count - 1}}  {text}"
