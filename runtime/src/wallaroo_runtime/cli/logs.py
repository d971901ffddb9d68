"""`wallaroo logs [CHECKPOINT|APP [NAME...]]`: the output of workers, gateway, egress and Spark in the last run.

Each run begins with a line `--- run began TIME ---`. Spark's output after `--- run stops TIME ---` is about its end.
"""

import argparse
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

from wallaroo_runtime.cli.parser import whole, wrong_usage
from wallaroo_runtime.cli.status import chosen
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.run.log_mark import is_begin

SILENT = "nothing was printed in the last run; --all shows former ones"
LINES = 20
READ_BYTES = 1 << 20
LOOK_S = 0.2


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("logs", help="show the output of the processes of a run", description=__doc__)
    what = "checkpoint directory, program, or name in `wallaroo ps`; default: the only running application"
    parser.add_argument("checkpoint", metavar="CHECKPOINT|APP", nargs="?", help=what)
    parser.add_argument("names", metavar="NAME", nargs="*", help="only logs that begin with NAME, e.g. worker or spark")
    parser.add_argument("--all", action="store_true", help="also the output of former runs")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with new output, until Ctrl-C")
    parser.add_argument(
        "--lines", "-n", type=whole(0), default=LINES, metavar="N", help="last N lines of each; default: 20"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with the time of its reading")


class Log:
    """A log file that is read from its last lines on, and then followed.

    Args:
        path: The file, which may be rotated while it is read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = path.stem
        self._inode = self._at = 0

    def last(self, count: int, *, every_run: bool = True) -> Iterator[str]:
        """Yield the last lines of the file, from at most 1 MiB. `more` continues after them.

        Args:
            count: Number of lines. The line at which the last run begins is added to them.
            every_run: Whether lines of earlier runs count, too.
        """
        with self._path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - READ_BYTES))
            data = file.read(min(size, READ_BYTES))
        whole = data[: data.rfind(b"\n") + 1]
        self._inode, self._at = self._path.stat().st_ino, size - len(data) + len(whole)
        lines = _texts(whole)
        shown = lines if every_run else lines[_begin(lines) :]
        if shown and is_begin(shown[0]) and 0 < count < len(shown):
            yield shown[0]
        yield from deque(shown, maxlen=count)

    def more(self) -> Iterator[str]:
        """Yield whole lines that were printed since the last call."""
        try:
            with self._path.open("rb") as file:
                inode, size = self._path.stat().st_ino, file.seek(0, 2)
                at = self._at if inode == self._inode and size >= self._at else 0
                file.seek(at)
                data = file.read(READ_BYTES)
        except FileNotFoundError:
            return
        # A line that is longer than one read is shown in pieces.
        whole = data if len(data) == READ_BYTES and b"\n" not in data else data[: data.rfind(b"\n") + 1]
        self._inode, self._at = inode, at + len(whole)
        yield from _texts(whole)


def _begin(lines: list[str]) -> int:
    """Return the index of the line at which the last run begins; the number of lines if the run has printed nothing."""
    at = max((number for number, line in enumerate(lines) if is_begin(line)), default=-1)
    return at + 1 if at + 1 == len(lines) else max(at, 0)


def _texts(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


def run(arguments: argparse.Namespace) -> int:
    """Print the last lines of the logs, and follow the logs if the user asks for this."""
    folder = chosen(arguments.checkpoint) / "logs"
    known: dict[Path, Log] = {}
    is_silent = True
    for log in _new(folder, arguments.names, known):
        for line in log.last(arguments.lines, every_run=arguments.all):
            is_silent = False
            _show(log.name, line, arguments.json)
    if not known and not arguments.follow:
        there = ", ".join(dict.fromkeys(path.stem for path in _paths(folder, []))) or "none"
        reason = f"{folder} has no log {' or '.join(arguments.names) or 'at all'}; there are: {there}"
        raise wrong_usage(reason=reason, fix="name one of these")
    if known and is_silent and not (arguments.follow or arguments.all or arguments.json):
        print(SILENT, file=sys.stderr)
    while arguments.follow:
        sleep(LOOK_S)
        for _ in _new(folder, arguments.names, known):
            pass
        for log in known.values():
            for line in log.more():
                _show(log.name, line, arguments.json)
    return 0


def _paths(folder: Path, names: list[str]) -> list[Path]:
    logs = (path for pattern in ("*.log", "*.out") for path in folder.glob(pattern))
    return sorted(path for path in logs if not names or path.name.startswith(tuple(names)))


def _new(folder: Path, names: list[str], known: dict[Path, Log]) -> Iterator[Log]:
    for path in _paths(folder, names):
        if path not in known:
            known[path] = Log(path)
            yield known[path]


def _show(name: str, line: str, as_json: bool) -> None:
    if as_json:
        print_json({"log": name, "line": line})
    else:
        print(f"{name} | {printable(line.expandtabs())}", flush=True)
