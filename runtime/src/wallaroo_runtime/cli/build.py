"""`wallaroo build DIR`: make a worker binary of a Go program."""

import argparse
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.durable.file import check_open


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("build", help="make a worker binary of a Go program", description=__doc__)
    parser.add_argument("directory", metavar="DIR", help="directory of the Go program; only --init changes it")
    parser.add_argument("-o", "--output", metavar="BIN", help="the binary; default: next to the other builds")
    parser.add_argument(
        "--init",
        action="store_true",
        help="build nothing, but let plain go commands work in DIR: writes go.mod where there is none, a go.work that "
        "names this machine's SDK, and a .gitignore for it and the binary",
    )
    parser.add_argument("--json", action="store_true", help="write findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Build a program, and print the path of its binary."""
    # Late, since only `build` and runs of Go programs need it.
    from wallaroo_runtime.program.build import build
    from wallaroo_runtime.program.init import init

    directory = Path(arguments.directory)
    check_open(directory)
    if arguments.init:
        if arguments.output:
            raise wrong_usage(reason="--init builds nothing; --output has no use", fix="leave one of the two out")
        init(directory)
        return 0
    print(build(directory, Path(arguments.output) if arguments.output else None))
    return 0
