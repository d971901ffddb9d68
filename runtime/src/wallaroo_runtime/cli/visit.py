"""`wallaroo visit CHECKPOINT|APP NAME`: run the visitors of a running application for every key that has state.

Without --wait the command ends when the visit is in the journal. The visit will reach each key exactly once, also if
the application is killed meanwhile.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wallaroo_runtime.checkpoint.directory import find_directory
from wallaroo_runtime.cli.conf import conf_of
from wallaroo_runtime.cli.gateway_option import credentials_of
from wallaroo_runtime.console.json_line import print_result
from wallaroo_runtime.errors import USAGE, RunError, count
from wallaroo_runtime.service.credential import AUTHORITY, TOKEN_FILE
from wallaroo_runtime.topology.override import parse_address

if TYPE_CHECKING:
    from wallaroo_runtime.service.endpoint import Service


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("visit", help="run visitors for every key that has state", description=__doc__)
    add = parser.add_argument
    add("checkpoint", metavar="CHECKPOINT|APP", help="checkpoint directory, or application; not used with --gateway")
    add("name", metavar="NAME", help="of the visit, as the state computation names it")
    metadata = parser.add_mutually_exclusive_group()
    metadata.add_argument("--metadata", metavar="TEXT", default="", help="text for the visitors")
    metadata.add_argument("--metadata-file", metavar="FILE", help="bytes for the visitors, which may be no text")
    add("--wait", action="store_true", help="wait until it is processed, and say how many keys were visited")
    add("--gateway", metavar="H:P", help="ask this gateway, of a run with remote gateways")
    what = f"its {TOKEN_FILE} and {AUTHORITY}, as of `run`"
    add("--conf", action="append", default=[], metavar="NAME=VALUE", help=what)
    add("--json", action="store_true", help="the result as a JSON object; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Request a visit. If `--wait` is given, wait for the result."""
    from wallaroo_runtime.peer.visit import VisitResult, ask, wait  # late import: gRPC takes long to import

    metadata = _metadata(arguments)
    with _gateway(arguments) as service:
        number = ask(service, arguments.name, metadata)
        done = wait(service, arguments.name, number) if arguments.wait else None
    text = told(arguments.name, done or VisitResult(number, -1, 0), is_done=done is not None)
    print_result({"id": number} if done is None else done._asdict(), text, as_json=arguments.json)
    return 0


def told(name: str, visited: Any, *, is_done: bool) -> str:
    """Return the result of a visit as a sentence.

    Example:
        >>> from wallaroo_runtime.peer.visit import VisitResult
        >>> print(told("reset", VisitResult(7, 1200, 1), is_done=True))
        visit "reset": 1,200 keys, 1 of them a dead letter
        >>> print(told("reset", VisitResult(7, -1, 0), is_done=False))
        visit "reset" is in the journal
    """
    if not is_done:
        return f'visit "{name}" is in the journal'
    if visited.keys < 0:
        return f'visit "{name}" is processed; how many keys it had is not known'
    dead = f", {visited.failed:,} of them {'a dead letter' if visited.failed == 1 else 'dead letters'}"
    return f'visit "{name}": {count(visited.keys, "key")}{dead if visited.failed else ""}'


def _metadata(arguments: argparse.Namespace) -> bytes:
    """Return the bytes of `--metadata` or `--metadata-file`."""
    path = arguments.metadata_file
    if path is None:
        return str(arguments.metadata).encode("utf-8", "surrogateescape")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise RunError.of("R616", USAGE, path=path, done="read", reason=error.strerror or str(error)) from error


@contextmanager
def _gateway(arguments: argparse.Namespace) -> Iterator["Service"]:
    from wallaroo_runtime.peer.local import local_service
    from wallaroo_runtime.peer.remote import RemoteOptions
    from wallaroo_runtime.peer.visit import away

    if arguments.gateway is None:
        checkpoint = find_directory(arguments.checkpoint)
        if not (checkpoint / "gateway" / "socket").exists():
            raise away(arguments.name)
        with local_service(checkpoint, "gateway") as service:
            yield service
        return
    parse_address("--gateway", arguments.gateway)
    options = RemoteOptions({"": arguments.gateway}, "", *credentials_of(conf_of(arguments.conf)))
    yield options.service("gateway", arguments.gateway)
