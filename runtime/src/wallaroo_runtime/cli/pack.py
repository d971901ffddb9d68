"""`wallaroo pack APP -o FILE`: make one file of an application, to run it on machines without its sources and tools.

The archive has the topology, Go workers for each processor or Python sources with a lock of their requirements, and
the hash of each file. `wallaroo run FILE` and `wallaroo submit FILE` run it.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wallaroo_runtime.archive.archive import ARCHITECTURES, file_digest, read_archive
from wallaroo_runtime.cli.option import Split, extracted, split, tell_split
from wallaroo_runtime.cli.parser import app_of, wrong_usage
from wallaroo_runtime.console.json_line import report
from wallaroo_runtime.program.app import ARCHIVE_SUFFIXES
from wallaroo_runtime.topology.load import load
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.override import broker_variables
from wallaroo_runtime.topology.secret import FILE, references, secret_arguments

USED = frozenset({"--json"})
OWN = dict.fromkeys(("-o", "--output", "--arch", "--requirements", "--include"), True)


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "pack",
        help="make one file of an application, for a cluster",
        usage="wallaroo pack APP -o FILE [OPTIONS] [APP ARGS]",
        description=__doc__,
        epilog="Options that are not listed go to the application.",
    )
    parser.add_argument("app", metavar="APP", nargs="?", help="Python file or module, Go directory, worker binary")
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", required=True, help="the archive, e.g. app.tar.gz")
    add("--arch", metavar="ARCH,...", default=",".join(ARCHITECTURES), help="processors; default: amd64,arm64")
    add("--requirements", metavar="FILE", help="requirements of Python; default: requirements.txt next to the program")
    add("--include", metavar="PATTERN", action="append", default=[], help="further files of the program's directory")
    add("--in", "-i", dest="inputs", default="", metavar="H:P,...", help="passed to the application")
    add("--out", dest="outputs", default="", metavar="H:P,...", help="passed to the application")
    add("--json", action="store_true", help="write findings as a JSON array")


def split_arguments(tokens: list[str]) -> Split:
    """Separate the command's own arguments from those for the application. Here, `-o` is an option of the command."""
    own, rest = extracted(tokens, OWN)
    parts = split(rest, USED)
    parts.own += own
    return parts


def run(arguments: argparse.Namespace) -> int:
    """Pack an application into an archive, and print the archive's hash as `sha256sum` does."""
    # Late: they import the build of Go programs.
    from wallaroo_runtime.program.application import unused_addresses
    from wallaroo_runtime.program.pack import PackOptions, pack

    architectures = tuple(arguments.arch.split(","))
    for name in architectures:
        if name not in ARCHITECTURES:
            fix = f"give some of {','.join(ARCHITECTURES)}"
            raise wrong_usage(reason=f"{name} is not a processor that can be packed for", fix=fix)
    output = Path(arguments.output)
    if not output.name.endswith(ARCHIVE_SUFFIXES):
        raise wrong_usage(reason=f"{output} does not look like an archive", fix="give a name that ends in .tar.gz")
    tell_split(arguments.parts)
    pack(
        PackOptions(
            app=app_of(arguments, "wallaroo pack"),
            output=output,
            args=tuple(arguments.parts.app),
            architectures=architectures,
            requirements=Path(arguments.requirements) if arguments.requirements else None,
            include=tuple(arguments.include),
        ),
        (lambda _: None) if arguments.json else lambda what: print(what, file=sys.stderr, flush=True),
    )
    topology = load(read_archive(output).topology)
    if unused := unused_addresses(topology, arguments.inputs, arguments.outputs, is_packed=True):
        report(unused, arguments.json)
    for line in carried(topology):
        print(line, file=sys.stderr)
    print(f"{file_digest(output)}  {output}")
    return 0


def carried(topology: Topology) -> Iterator[str]:
    """Yield lines for the user about an archive: the addresses in it, and the environment variables that it needs."""
    variables = broker_variables(topology.document)
    for option, ends in (("--in", topology.sources()), ("--out", topology.sinks())):
        for end in ends:
            brokers = getattr(end, "brokers", ())
            if brokers or hasattr(end, "host"):
                address = ",".join(brokers) or end.place
                other = variables[end.name, tuple(brokers)] if brokers else option
                yield f'carries {address} of "{end.name}"; {other} replaces it when the archive runs'
    for name in dict.fromkeys(name for worker in topology.workers for name in secret_arguments(worker.args)):
        yield f"carries the argument {name}, which looks like a secret; let the program read it where it runs"
    for name in references(topology.document):
        yield f"needs {name} in the environment where it runs, or {name}{FILE}, the path of a file with the value"
