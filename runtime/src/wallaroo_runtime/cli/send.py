"""`wallaroo send`: send the lines of a file as messages to a TCP source."""

import argparse
import itertools
import socket
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo_runtime.deploy.address import parse_address
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.ingest.framing import KINDS, length_packer

BLOCK_MESSAGES = 10_000
ACKNOWLEDGE_SECONDS = 60.0


@dataclass
class Sent:
    """How much was sent so far."""

    messages: int = 0
    bytes: int = 0


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("send", help="send the lines of a file as messages", description=__doc__)
    parser.add_argument("--host", required=True, metavar="H:P", help="where the source listens")
    parser.add_argument("--file", required=True, metavar="F", help="what to send; - reads stdin")
    parser.add_argument(
        "--framing",
        choices=[*KINDS, "newline", "none"],
        default="u32be",
        help="what stands around each line: its length before it, a newline after it; none sends the file as it is",
    )
    parser.add_argument("--messages", type=_positive, metavar="N", help="stop after N messages")
    parser.add_argument("--repeat", type=_positive, metavar="N", default=1, help="send the file N times")
    parser.add_argument("--rate", type=_positive, metavar="N", help="send about N messages per second at most")
    parser.add_argument("--skip-blank", action="store_true", help="leave out lines without a character")


def run(arguments: argparse.Namespace) -> int:
    """Send, half-close, and wait until the source has everything in its journal."""
    data = _read(arguments.file)
    begin = time.monotonic()
    sent = Sent()
    with _connect(arguments.host) as connection:
        try:
            _send(connection, data, arguments, sent)
        except OSError as error:
            reason = f"the connection broke after {sent.messages} messages, not all of which are safe; {error}"
            raise RunError.of("R618", address=arguments.host, reason=reason) from error
    what = f"{sent.bytes} bytes as they are"
    if arguments.framing != "none":
        what = f"{sent.messages} messages, {sent.bytes} bytes"
    seconds = time.monotonic() - begin
    print(f"sent {what}, in {seconds:.1f} s; {arguments.host} has taken all of them", file=sys.stderr)
    return 0


def _send(connection: socket.socket, data: bytes, arguments: argparse.Namespace, sent: "Sent") -> None:
    begin = time.monotonic()
    for count, block in _blocks(data, arguments):
        connection.sendall(block)
        sent.messages += count
        sent.bytes += len(block)
        if arguments.rate:
            time.sleep(max(0.0, begin + sent.messages / arguments.rate - time.monotonic()))
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(ACKNOWLEDGE_SECONDS)
    while connection.recv(65536):
        pass  # a source says nothing; its EOF is the acknowledgement


def frame(lines: list[bytes], framing: str) -> bytes:
    r"""Put the framing around each line.

    Example:
        >>> frame([b"ab", b""], "u16be")
        b'\x00\x02ab\x00\x00'
    """
    if framing == "newline":
        return b"".join([line + b"\n" for line in lines])
    pack = length_packer(framing).pack
    try:
        return b"".join([pack(len(line)) + line for line in lines])
    except struct.error as error:
        longest = max(map(len, lines))
        reason = f"a line of {longest} bytes does not fit framing {framing}"
        raise RunError.of("R608", USAGE, reason=reason, fix="choose a framing with a wider length") from error


def _blocks(data: bytes, arguments: argparse.Namespace) -> Iterator[tuple[int, bytes]]:
    """Yield numbers of messages and the bytes to send for them."""
    if arguments.framing == "none":
        yield from ((0, data) for _ in range(arguments.repeat))
        return
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    if arguments.skip_blank:
        lines = [line for line in lines if line.strip()]
    size = BLOCK_MESSAGES if not arguments.rate else max(1, min(BLOCK_MESSAGES, arguments.rate // 20))
    repeated = itertools.chain.from_iterable(itertools.repeat(lines, arguments.repeat))
    wanted = itertools.islice(repeated, arguments.messages)
    while block := list(itertools.islice(wanted, size)):
        yield len(block), frame(block, arguments.framing)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        message = f"{number} is not positive"
        raise argparse.ArgumentTypeError(message)
    return number


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise RunError.of("R616", USAGE, path=name, reason=error.strerror or str(error)) from error


def _connect(text: str) -> socket.socket:
    try:
        return socket.create_connection(parse_address("--host", text), timeout=ACKNOWLEDGE_SECONDS)
    except OSError as error:
        raise RunError.of("R618", address=text, reason=error.strerror or str(error)) from error
