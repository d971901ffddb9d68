"""`wallaroo send`: send the lines of a file as messages to a TCP source.

Options of Wallaroo's sender are accepted, too: --batch-size, --interval, --repeat without a number, --binary, --u64.
"""

import argparse
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wallaroo_runtime.cli.message import blocks, rate_of
from wallaroo_runtime.cli.option import SENDER, Split, without_effect
from wallaroo_runtime.cli.parser import tell_split, whole
from wallaroo_runtime.errors import RunError, plural
from wallaroo_runtime.gateway.framing import KINDS
from wallaroo_runtime.topology.override import parse_address

ACKNOWLEDGE_SECONDS = 60.0


@dataclass
class Sent:
    """The number of messages and bytes sent so far."""

    messages: int = 0
    bytes: int = 0


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("send", help="send the lines of a file as messages", description=__doc__)
    parser.add_argument("--host", required=True, metavar="H:P", help="where the source listens")
    add = parser.add_argument
    add("--file", "-f", metavar="F,...", help="files to send; - reads stdin; none: the numbers from 1 on, as text")
    add(
        "--framing",
        choices=[*KINDS, "none"],
        default="u32be",
        help="the bytes around each line: its length before it, a newline after it; none sends the file as it is",
    )
    add("--messages", "-m", type=whole(1), metavar="N", help="stop after N messages")
    add(
        "--repeat", "-r", type=whole(1), metavar="N", default=1, nargs="?", const=0,
        help="send the file N times; without N until --messages are sent",
    )  # fmt: skip
    add("--rate", type=whole(1), metavar="N", help="send about N messages per second at most")
    add("--batch-size", "-s", type=whole(1), metavar="N", help="send N messages at a time, one batch per --interval")
    add("--interval", "-i", type=whole(1), metavar="NS", default=5_000_000, help="nanoseconds; default: 5000000")
    add("--binary", "-y", action="store_true", help="the file has whole messages, each with its length before it")
    add("--msg-size", "-g", type=whole(1), metavar="N", help="with --binary: bytes of a message and its length")
    add("--variable-size", "-z", action="store_true", help="with --binary: 4 bytes before each message say its length")
    add("--u64", "-u", action="store_true", help="without --file: numbers are 8 bytes, big-endian")
    add("--start-from", "-v", type=int, metavar="N", default=0, help="without --file: begin after N")


def split_arguments(tokens: list[str]) -> Split:
    """Separate options that Wallaroo's own sender has, but that have no effect here."""
    return without_effect(tokens, SENDER)


def run(arguments: argparse.Namespace) -> int:
    """Send messages, half-close the connection, and wait until the source has everything in its journal."""
    tell_split(arguments.parts)
    ready = blocks(arguments)
    begin = time.monotonic()
    sent = Sent()
    with _connect(arguments.host) as connection:
        try:
            _send(connection, ready, rate_of(arguments), sent)
        except OSError as error:
            reason = (
                f"it was closed after {sent.messages:,} messages were sent, not all of which are safe, with --framing "
            )
            reason += f"{arguments.framing}: {error.strerror or error}"
            raise RunError.of("R618", address=arguments.host, reason=reason) from error
    what = f"{sent.bytes} bytes as they are"
    if arguments.framing != "none" or arguments.binary:
        what = f"{sent.messages} {plural(sent.messages, 'message')}, {sent.bytes} bytes"
    seconds = time.monotonic() - begin
    print(f"sent {what}, in {seconds:.1f} s; {arguments.host} has taken all of them", file=sys.stderr)
    return 0


def _send(connection: socket.socket, ready: Iterator[tuple[int, bytes]], rate: float, sent: Sent) -> None:
    begin = time.monotonic()
    for count, block in ready:
        connection.sendall(block)
        sent.messages += count
        sent.bytes += len(block)
        if rate:
            time.sleep(max(0.0, begin + sent.messages / rate - time.monotonic()))
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(ACKNOWLEDGE_SECONDS)
    while connection.recv(65536):
        pass  # a source sends nothing; its EOF is the acknowledgement


def _connect(text: str) -> socket.socket:
    try:
        return socket.create_connection(parse_address("--host", text), timeout=ACKNOWLEDGE_SECONDS)
    except OSError as error:
        raise RunError.of("R618", address=text, reason=error.strerror or str(error)) from error
