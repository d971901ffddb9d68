"""The messages of `wallaroo send`: the lines of files, the messages of binary files, or numbers."""

import argparse
import itertools
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.gateway.framing import length_packer

BLOCK_MESSAGES = 10_000
LENGTH_BYTES = 4
NANOSECONDS = 1_000_000_000


def blocks(arguments: argparse.Namespace) -> Iterator[tuple[int, bytes]]:
    """Read the files to send. Return an iterator of blocks, each with its number of messages and its bytes.

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
    """Return the messages to send once or repeatedly, and the function that turns them into bytes to send."""
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
