"""`wallaroo receive`: listen as the receiver of a TCP sink, and show or save the received messages."""

import argparse
import os
import selectors
import socket
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from wallaroo_runtime.cli.option import PONY, tell_split, without_effect
from wallaroo_runtime.cli.parser import amount, whole
from wallaroo_runtime.errors import USAGE, RunError, host_port
from wallaroo_runtime.system.stop import Stop, stop_event
from wallaroo_runtime.topology.override import parse_address

READ_BYTES = 1 << 20
LENGTH_BYTES = 4
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
POLL_SECONDS = 0.2

split_arguments = partial(without_effect, ignored=PONY)


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("receive", help="show the output of a TCP sink", description=__doc__)
    parser.add_argument("--listen", "-l", required=True, metavar="H:P", help="where to listen")
    parser.add_argument(
        "--framed", "-f", action="store_true", help="messages have 4 bytes of length before them; show each as a line"
    )
    parser.add_argument("--output", metavar="F", help="file to write to; otherwise stdout")
    parser.add_argument("--no-write", "-n", action="store_true", help="count the messages, and throw them away")
    read = amount("number of seconds", "10")
    parser.add_argument("--stop-when-idle", type=read, metavar="S", help="end when nothing came for S seconds")
    parser.add_argument("--expect", type=whole(0), metavar="N", help="end after N lines, or messages with --framed")


@dataclass
class ReceivedWriter:
    """Writes received bytes as lines or messages to the output.

    Attributes:
        framed: Whether messages have a length before them.
        messages: Number of lines or messages so far.
        pending: For each connection, the beginning of a message that is not complete yet.
    """

    output: BinaryIO
    framed: bool
    messages: int = 0
    pending: dict[socket.socket, bytes] = field(default_factory=dict)

    def take(self, connection: socket.socket, data: bytes) -> None:
        """Write the bytes of a connection. If messages are framed, keep an incomplete one until its rest arrives."""
        if not self.framed:
            self.messages += data.count(b"\n")
            self.output.write(data)
            self.output.flush()
            return
        data = self.pending.get(connection, b"") + data
        at = 0
        while len(data) - at >= LENGTH_BYTES:
            size = int.from_bytes(data[at : at + LENGTH_BYTES], "big")
            if size > MAX_MESSAGE_BYTES:
                reason = f"a length of {size} bytes came; {MAX_MESSAGE_BYTES} is the limit"
                raise RunError.of("R608", USAGE, reason=reason, fix="leave out --framed if messages have no length")
            end = at + LENGTH_BYTES + size
            if end > len(data):
                break
            self.output.write(data[at + LENGTH_BYTES : end] + b"\n")
            self.messages += 1
            at = end
        self.output.flush()
        self.pending[connection] = data[at:]

    def leave(self, connection: socket.socket) -> None:
        """Drop the incomplete message of a closed connection: the sender repeats it on the next connection."""
        self.pending.pop(connection, None)


def run(arguments: argparse.Namespace) -> int:
    """Listen until enough messages have arrived, none arrives for some time, or a signal ends the command."""
    tell_split(arguments.parts)
    listener = _listen(arguments.listen)
    stopped = stop_event()
    file = os.devnull if arguments.no_write else arguments.output
    try:
        output = open(file, "wb") if file else sys.stdout.buffer  # noqa: SIM115
    except OSError as error:
        raise RunError.of("R616", USAGE, path=file, done="written", reason=error.strerror or str(error)) from error
    receiver = ReceivedWriter(output, arguments.framed)
    host, port = listener.getsockname()[:2]
    print(f"listening at {host_port(host, port)}", file=sys.stderr, flush=True)
    with listener:
        _serve(listener, receiver, arguments, stopped)
    output.flush()
    print(f"received {receiver.messages} {'messages' if arguments.framed else 'lines'}", file=sys.stderr)
    return 0


def _serve(listener: socket.socket, receiver: ReceivedWriter, arguments: argparse.Namespace, stopped: Stop) -> None:
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    last = time.monotonic()
    while not _is_over(receiver, arguments, time.monotonic() - last):
        # After a signal, bytes that the kernel has already received are still written.
        events = selector.select(0 if stopped.is_set() else POLL_SECONDS)
        if stopped.is_set() and not events:
            break
        for key, _ in events:
            ready = key.fileobj
            assert isinstance(ready, socket.socket)
            if ready is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif _take(ready, receiver):
                last = time.monotonic()
            else:
                selector.unregister(ready)
                ready.close()
    for key in list(selector.get_map().values()):
        if isinstance(key.fileobj, socket.socket) and key.fileobj is not listener:
            key.fileobj.close()
    selector.close()


def _is_over(receiver: ReceivedWriter, arguments: argparse.Namespace, idle: float) -> bool:
    if arguments.expect is not None and receiver.messages >= arguments.expect:
        return True
    return arguments.stop_when_idle is not None and idle > arguments.stop_when_idle


def _take(connection: socket.socket, receiver: ReceivedWriter) -> bool:
    """Read once from a connection. Return whether it is still open."""
    try:
        data = connection.recv(READ_BYTES)
    except ConnectionError:
        data = b""
    if data:
        receiver.take(connection, data)
    else:
        receiver.leave(connection)
    return bool(data)


def _listen(text: str) -> socket.socket:
    address = parse_address("--listen", text)
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        return socket.create_server(address, family=family)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise RunError.of("R714", USAGE, what="receive", address=text, reason=reason, option="--listen") from error
