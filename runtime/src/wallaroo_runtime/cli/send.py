"""`wallaroo send`: send the lines of a file as messages to a TCP source.

Options of Wallaroo's sender are accepted, too: --batch-size, --interval, --repeat without a number, --binary, --u64.
"""

import argparse
import itertools
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.option import SENDER, tell_split, without_effect
from wallaroo_runtime.cli.parser import whole, wrong_usage
from wallaroo_runtime.errors import USAGE, RunError, plural
from wallaroo_runtime.gateway.framing import KINDS, length_packer
from wallaroo_runtime.topology.override import parse_address

ACKNOWLEDGE_SECONDS = 60.0
BLOCK_MESSAGES = 10_000
LENGTH_BYTES = 4
NANOSECONDS = 1_000_000_000

split_arguments = partial(without_effect, ignored=SENDER)


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
    add("--start-from", "-v", type=whole(0), metavar="N", default=0, help="without --file: begin after N")


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


def blocks(arguments: argparse.Namespace) -> Iterator[tuple[int, bytes]]:
    """Read the files to send. Return blocks to send: each is a number of messages and their bytes.

    Raises:
        RunError: R608 if the options or the file do not fit; R616 if a file cannot be read.
    """
    if arguments.framing == "none" and not arguments.binary:
        return itertools.repeat((0, _read(arguments.file)), _times(arguments))
    items, wrap = _messages(arguments)
    wanted = itertools.islice(_repeated(items, arguments), arguments.messages)
    size = arguments.batch_size or BLOCK_MESSAGES
    if arguments.rate:
        size = max(1, min(BLOCK_MESSAGES, arguments.rate // 20))
    return _packed(wanted, size, wrap)


def _packed(items: Iterator[bytes], size: int, wrap: Callable[[list[bytes]], bytes]) -> Iterator[tuple[int, bytes]]:
    while block := list(itertools.islice(items, size)):
        yield len(block), wrap(block)


def rate_of(arguments: argparse.Namespace) -> float:
    """Return the limit of messages per second; 0 if there is no limit."""
    if arguments.batch_size and not arguments.rate:
        return float(arguments.batch_size * NANOSECONDS / arguments.interval)
    return float(arguments.rate or 0)


def frame(lines: list[bytes], framing: str) -> bytes:
    r"""Return the bytes of lines as messages: each line gets the framing.

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


def _messages(arguments: argparse.Namespace) -> tuple[Iterable[bytes], Callable[[list[bytes]], bytes]]:
    """Return the messages to send, and the function that converts them to bytes. Messages may be sent repeatedly."""
    if arguments.binary and (arguments.file or not arguments.u64):
        return _cut(_read(arguments.file), arguments), b"".join
    if arguments.file is None:
        if not arguments.messages:
            reason = "there is no end to the numbers"
            raise wrong_usage(reason=reason, fix="say how many with --messages, or give a file with --file")
        if arguments.binary and arguments.msg_size not in (None, LENGTH_BYTES + 8):
            reason = f"a number has {LENGTH_BYTES + 8} bytes with its length, and --msg-size is {arguments.msg_size}"
            raise wrong_usage(reason=reason, fix=f"give --msg-size {LENGTH_BYTES + 8}, or leave it out")
        numbers = itertools.count(arguments.start_from + 1)
        texts = (struct.pack(">Q", number) if arguments.u64 else b"%d" % number for number in numbers)
        return texts, lambda items: frame(items, arguments.framing)
    lines = _read(arguments.file).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines], lambda items: frame(items, arguments.framing)


def _cut(data: bytes, arguments: argparse.Namespace) -> list[bytes]:
    """Return the messages of a binary file, each with the length field in front of it."""
    size, at, messages = arguments.msg_size, 0, []
    if not size and not arguments.variable_size:
        reason = "--binary does not say where messages end"
        raise wrong_usage(reason=reason, fix="give --msg-size N or --variable-size")
    while at < len(data):
        end = at + (size or LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big"))
        if end > len(data):
            reason = f"the last message of {arguments.file} ends {end - len(data)} bytes after the end of the file"
            raise wrong_usage(reason=reason, fix="look at --msg-size, which counts the length before a message too")
        messages.append(data[at:end])
        at = end
    return messages


def _repeated(items: Iterable[bytes], arguments: argparse.Namespace) -> Iterator[bytes]:
    if arguments.repeat == 0 and arguments.messages:
        return itertools.cycle(items)
    return itertools.chain.from_iterable(itertools.repeat(items, _times(arguments)))


def _times(arguments: argparse.Namespace) -> int:
    if arguments.repeat == 0:
        reason = "--repeat says not how often"
        raise wrong_usage(reason=reason, fix="give --repeat N, or how many to send with --messages")
    return int(arguments.repeat)


def _read(names: str | None) -> bytes:
    """Return the content of files, one after the other. Commas separate their names."""
    if names is None:
        reason = "there is nothing to send"
        raise wrong_usage(reason=reason, fix="give a file with --file")
    files = [names] if names == "-" or Path(names).exists() else names.split(",")
    return b"".join(map(_read_file, files))


def _read_file(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise RunError.of("R616", USAGE, path=name, done="read", reason=error.strerror or str(error)) from error
