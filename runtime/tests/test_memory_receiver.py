"""The output of `wallaroo run --engine memory` to a receiver whose connections break."""

import asyncio
import socket
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.memory.receiver import Receiver
from wallaroo_runtime.topology.model import TcpSink

RESET = struct.pack("ii", 1, 0)  # close() resets the connection
SECONDS, BUFFERED = 20.0, 4_000_000  # more than a socket takes of a peer that does not read


@settings(max_examples=8)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=3), st.integers(1, 3))
def test_output_that_a_broken_connection_did_not_take_is_sent_to_the_next(sizes: list[int], breaks: int) -> None:
    async def serve() -> None:
        connections = 0

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            if connections <= breaks:
                await reader.read(1)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.transport.abort()
            else:
                while await reader.read(1 << 20):
                    pass
                writer.close()

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        sink = TcpSink(path="", name="out", kind="tcp", worker="", inputs=(), host=host, port=port)
        receiver = Receiver(sink, lambda _: None)
        running = asyncio.create_task(receiver.run())
        for size in sizes:
            receiver.put(b"x" * (BUFFERED + size), 1)
        while receiver.pending:
            await asyncio.sleep(0.01)
        assert (connections, receiver.waiting) == (breaks + 1, 0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        server.close()
        await asyncio.sleep(0.05)  # connections close

    asyncio.run(asyncio.wait_for(serve(), SECONDS))
