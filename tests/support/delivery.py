"""Streams of `OutboxService.Deliver`, as a task's attempt writes them, and the sink that gets their output."""

import queue
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from support.service import SINK, Place, serving
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION
from wallaroo_runtime.service.chunk import CHUNK_BYTES
from wallaroo_runtime.service.client import ServiceClient
from wallaroo_runtime.service.endpoint import Service

CALL_S = WAIT_S = 60.0
Result = tuple[int, bytes]  # sequence and value


def frame_of(results: Sequence[Result], port: int = SINK) -> bytes:
    """Return a frame of results."""
    first = min(sequence for sequence, _ in results)
    differences = [sequence - first for sequence, _ in results]
    is_plain = differences == list(range(len(results)))
    return encode_frame(
        [value for _, value in results],
        port=port,
        sequence=first,
        timestamp_ms=1,
        sequences=() if is_plain else differences,
    )


class Attempt:
    """An attempt of a task that delivers."""

    def __init__(
        self, service: Service, attempt: int = 1, batch: int = 0, partition: int = 0, query: str = "q"
    ) -> None:
        self._client, self._requests, self.number = ServiceClient(service), queue.SimpleQueue[Any](), 0
        opening = pb.Attempt(epoch=service.epoch, query=query, batch=batch, partition=partition, attempt=attempt)
        self._requests.put(pb.DeliverRequest(opening=opening))
        self.call = self._client.stub.Deliver(
            iter(self._requests.get, None), timeout=CALL_S, metadata=self._client.metadata
        )

    def send(self, frame: bytes, bucket: int = -1, port: int = SINK, chunk_bytes: int = CHUNK_BYTES) -> None:
        """Send frames without waiting."""
        for at in range(0, len(frame), chunk_bytes):
            is_continued = at + chunk_bytes < len(frame)
            self.number += 1
            chunk = pb.Chunk(data=frame[at : at + chunk_bytes], is_continued=is_continued)
            delivery = pb.Delivery(number=self.number, port=port, bucket=bucket, chunk=chunk)
            self.raw(delivery)

    def raw(self, *deliveries: pb.Delivery) -> None:
        """Send deliveries as they are, in one request."""
        self._requests.put(pb.DeliverRequest(deliveries=pb.Deliveries(items=deliveries)))

    def arrive(self, arrived: Mapping[int, int], computed_ms: int = 0) -> None:
        """Say when the messages arrived whose output was sent last: how many, by milliseconds since 1970."""
        times = [pb.Arrived(time_ms=at, messages=count) for at, count in arrived.items()]
        self._requests.put(pb.DeliverRequest(deliveries=pb.Deliveries(arrived=times, computed_ms=computed_ms)))

    def commit(self, sequence: int) -> None:
        """Say that input before a sequence is committed."""
        self._requests.put(pb.DeliverRequest(committed=sequence))

    def replies(self) -> Iterator[int]:
        """Yield the numbers of replies; errors are those of the catalogue."""
        try:
            for reply in self.call:
                yield reply.number
        except grpc.RpcError as error:
            raise self._client.failure(error) from error

    def settle(self) -> None:
        """Wait until everything that was sent is safe."""
        while self.number and next(self.replies()) < self.number:
            continue

    def end(self) -> None:
        """Say that nothing more comes, and wait for the answer."""
        self._requests.put(None)
        for _ in self.replies():
            continue

    def drop(self) -> None:
        """Break the stream."""
        self.call.cancel()
        self._requests.put(None)


class Receiver:
    """Keeps what comes over its connections."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.received = bytearray()
        self.connections: list[socket.socket] = []
        self.changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        try:
            while data := connection.recv(1 << 20):
                with self.changed:
                    self.received += data
                    self.changed.notify_all()
        except OSError:
            return

    def wait(self, size: int) -> bytes:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.received) >= size, WAIT_S), bytes(self.received[-100:])
        return bytes(self.received)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self.connections:
            connection.close()


def attach(place: Place, receiver: Receiver, driver: str = "d1", **more: int) -> None:
    """Attach a driver whose sink is the receiver."""
    who = pb.Driver(protocol_version=PROTOCOL_VERSION, id=driver, application="app", checkpoint="c1")
    request = pb.AttachOutboxRequest(driver=who, **more)
    request.sinks.add(port=SINK, name="out", host="127.0.0.1", tcp_port=receiver.port)
    reply = ServiceClient(place.service, 1.0).call("Attach", request)
    place.service = place.service.attached(reply.epoch, reply.store)


@contextmanager
def egress(directory: Path, receiver: Receiver, **more: int) -> Iterator[Place]:
    """Run an egress with a driver."""
    with serving("egress", directory) as place:
        attach(place, receiver, **more)
        yield place


def lines(start: int, end: int) -> list[tuple[int, bytes]]:
    return [(number, b"%06d\n" % number) for number in range(start, end)]


def data(results: list[tuple[int, bytes]]) -> bytes:
    return b"".join(value for _, value in results)
