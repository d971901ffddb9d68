"""Delivery by a task itself: what it makes for a sink goes to the receiver, over a connection of the task's own."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from wallaroo.fault import reach
from wallaroo.frame import read_frame
from wallaroo_runtime.egress.config import SinkConfig
from wallaroo_runtime.egress.connection import Connection
from wallaroo_runtime.egress.staging import StagedFile
from wallaroo_runtime.errors import RunError

REACH_S = 15.0
CLOSE_S = 2.0
FIRST_BACKOFF_S, LAST_BACKOFF_S = 0.05, 1.0
FIRST_ACK_WAIT_S, LAST_ACK_WAIT_S = 0.001, 0.02
SENDING_WAIT_S = 1.0


class Delivery:
    """Sends the frames of one task attempt to one receiver, which holds the task up when it is slow.

    Nothing is kept: a connection that breaks is an error, the attempt fails, and the next one sends all of it again.

    Args:
        config: The sink.
        attempt: Names the attempt, for the driver.
        partition: Spark's partition.
        reach_s: How long to try to connect.
        close_s: How long to wait for the receiver's side to be closed.

    Raises:
        RunError: R687, the receiver cannot be reached.
    """

    def __init__(
        self, config: SinkConfig, attempt: str, partition: int, *, reach_s: float = REACH_S, close_s: float = CLOSE_S
    ) -> None:
        self._config, self._attempt, self._partition, self._close_s = config, attempt, partition, close_s
        self._bytes = self._messages = 0
        with self._told(f"no connection for {reach_s:g} s"):
            self._connection = self._connect(reach_s)

    def _connect(self, reach_s: float) -> Connection:
        deadline, backoff = time.monotonic() + reach_s, FIRST_BACKOFF_S
        while True:
            try:
                return Connection(self._config)
            except OSError:
                if time.monotonic() + backoff > deadline:
                    raise
            time.sleep(backoff * random.uniform(0.5, 1.0))
            backoff = min(2 * backoff, LAST_BACKOFF_S)

    @contextmanager
    def _told(self, what: str = "the connection broke") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = f"{what}; {error.strerror or error}"
            raise RunError.of("R687", sink=self._config.name, address=self._config.address, reason=reason) from error

    def write(self, frame: bytes) -> None:
        """Send the messages of a whole frame; returns when the system has taken them.

        Raises:
            FrameError: The frame is damaged.
            RunError: R687, the connection broke.
        """
        content = read_frame(frame)
        rest = memoryview(content.data)
        with self._told():
            while rest:
                count = self._connection.send(rest)
                if not count:
                    self._connection.wait(SENDING_WAIT_S, is_sending=True)
                rest = rest[count:]
        self._bytes += len(content.data)
        self._messages += len(content.lengths)
        reach("task.after_send")

    def so_far(self) -> StagedFile:
        """Return what was sent, as a descriptor without a file."""
        path = f"{self._config.address}/{self._attempt}"
        return StagedFile(self._config.port, path, self._bytes, 0, self._messages, self._partition)

    def finish(self) -> None:
        """Tell the receiver that nothing more comes.

        Raises:
            RunError: R687, the connection broke.
        """
        with self._told():
            self._connection.finish()

    def settle(self) -> None:
        """Wait until the receiver has everything.

        It has when its TCP has acknowledged the end and it has closed its side, for a system that closes a connection
        with unread bytes resets it. Some receivers never close: after a while the acknowledgement is enough.

        Raises:
            RunError: R687, the connection broke.
        """
        wait_s = FIRST_ACK_WAIT_S
        with self._told():
            while self._connection.outstanding():
                self._connection.check()
                # Acknowledgements cannot be waited for.
                self._connection.wait(wait_s)
                wait_s = min(2 * wait_s, LAST_ACK_WAIT_S)
            deadline = time.monotonic() + self._close_s
            while self._connection.peer_is_open and (left := deadline - time.monotonic()) > 0:
                self._connection.wait(left)
            self._connection.check()
        self.close()

    def close(self) -> None:
        """Close the connection, whatever was sent."""
        self._connection.close()
