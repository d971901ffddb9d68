"""Sends the output of an application in memory to the receivers of its TCP sinks."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.experimental.tcp import refuse_itself
from wallaroo_runtime.system.backoff import Backoff
from wallaroo_runtime.topology.model import TcpSink

FIRST_S, LAST_S = 0.05, 2.0  # between two attempts to connect


class Receiver:
    """Sends output to one TCP receiver. Messages wait in memory for a connection. No message is sent twice.

    Attributes:
        pending: Bytes that wait to be sent.
        waiting: Number of the messages that wait to be sent.
        sent_at: Monotonic time when the receiver took output for the last time.
    """

    def __init__(self, sink: TcpSink, say: Callable[[Diagnostic], None]) -> None:
        self.sink, self.pending, self.waiting = sink, bytearray(), 0
        self.sent_at = 0.0
        self._say, self._wake = say, asyncio.Event()

    def put(self, data: bytes, messages: int) -> None:
        """Add the bytes of messages, which are sent as soon as there is a connection."""
        self.pending += data
        self.waiting += messages
        self._wake.set()

    async def run(self) -> None:
        """Connect and send, and connect again after a failure, until the task is cancelled."""
        backoff = Backoff(FIRST_S, LAST_S)
        while True:
            try:
                _, writer = await asyncio.open_connection(self.sink.host or "localhost", self.sink.port)
                try:
                    refuse_itself(writer.get_extra_info("sockname"), writer.get_extra_info("peername"))
                except OSError:
                    writer.close()
                    raise
            except OSError as error:
                if not backoff.count:
                    reason = os.strerror(error.errno) if error.errno else str(error)
                    self._say(
                        Diagnostic.of(
                            "R613",
                            sink=self.sink.name,
                            address=self.sink.place,
                            reason=reason,
                            fix=f"`wallaroo receive --listen {self.sink.place}`, or a program of yours",
                        )
                    )
                await asyncio.sleep(backoff.next())
                continue
            backoff.count = 0
            with contextlib.suppress(ConnectionError):
                await self._send(writer)

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                while not self.pending:
                    self._wake.clear()
                    await self._wake.wait()
                data, messages = bytes(self.pending), self.waiting
                writer.write(data)
                await writer.drain()
                del self.pending[: len(data)]
                self.waiting -= messages
                self.sent_at = time.monotonic()
        finally:
            writer.close()
