"""The installed librdkafka finds a broker again that stopped, whatever the broker's last answer was."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from wallaroo_runtime.kafka.producer import DEFAULTS

pytestmark = pytest.mark.slow
VERSIONS, METADATA = 18, 3  # requests that it answers, with version 0 and up to version 2
UNSUPPORTED_VERSION, LEADER_NOT_AVAILABLE = 35, 5
KNOWN_S, AWAY_S, FOUND_S = 4.0, 1.0, 30.0


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


class StoppingBroker:
    """Answers as a broker does that is the only one of its cluster and stops.

    The last answer is that there are no brokers. The client's next connection ends at once.

    Attributes:
        is_found: Whether a client connected to it after its stop.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.is_found = self._stops = self._was_away = False
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """Stop with the next answer; a second later it runs again."""
        self._stops = True

    def close(self) -> None:
        """End it for good."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.is_found = self._was_away
                self._connections.append(connection)
                if not self._stops:
                    threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        requests = connection.makefile("rb")
        with contextlib.suppress(OSError):
            while head := requests.read(4):
                kind, version, number = struct.unpack(">hhi", requests.read(*struct.unpack(">i", head))[:8])
                answer = self._metadata() if kind == METADATA else self._versions(version)
                connection.sendall(struct.pack(">ii", len(answer) + 4, number) + answer)
                if kind == METADATA and self._stops:
                    self._end()

    def _versions(self, version: int) -> bytes:
        if version:
            return struct.pack(">hi", UNSUPPORTED_VERSION, 0)
        return struct.pack(">hi", 0, 2) + struct.pack(">hhh", VERSIONS, 0, 0) + struct.pack(">hhh", METADATA, 0, 2)

    def _metadata(self) -> bytes:
        brokers, leader, error = struct.pack(">i", 0), -1, LEADER_NOT_AVAILABLE
        if not self._stops:
            brokers = struct.pack(">ii", 1, 1) + text("127.0.0.1") + struct.pack(">ih", self.port, -1)
            leader, error = 1, 0
        topic = struct.pack(">ih", 1, 0) + text("topic") + bytes(1)
        partition = struct.pack(">ihii", 1, error, 0, leader) + struct.pack(">ii", 1, 1) * 2
        return brokers + text("cluster") + struct.pack(">i", leader) + topic + partition

    def _end(self) -> None:
        time.sleep(0)  # another thread may accept the client's next connection
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        time.sleep(AWAY_S)
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._stops, self._was_away = False, True
        threading.Thread(target=self._accept, daemon=True).start()


@pytest.fixture
def brokers() -> Iterator[list[StoppingBroker]]:
    made = [StoppingBroker() for _ in range(12)]  # librdkafka 2.11 forgets some of them
    yield made
    for each in made:
        each.close()


def test_brokers_that_stop_are_found_again(brokers: list[StoppingBroker]) -> None:
    settings = {**DEFAULTS, "broker.address.family": "v4", "log_level": 0, "topic.metadata.refresh.interval.ms": 500}
    producers = [Producer({**settings, "bootstrap.servers": f"127.0.0.1:{each.port}"}) for each in brokers]
    for producer in producers:
        producer.produce("topic", b"waits", partition=0)
    time.sleep(KNOWN_S)
    for each in brokers:
        each.stop()
    deadline = time.monotonic() + FOUND_S
    while lost := [each.port for each in brokers if not each.is_found]:
        assert time.monotonic() < deadline, f"{len(lost)} clients look for no broker"
        time.sleep(0.1)
    for producer in producers:
        producer.purge()
