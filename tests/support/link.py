"""A network between two processes that goes away and comes back."""

import contextlib
import select
import socket
import threading

from support.run import WAIT_S

PIECE = 64 * 1024
LOOK_S = 0.05
RESET = b"\1\0\0\0\0\0\0\0"  # no lingering: the other side gets a reset


class Link:
    """Passes bytes on between those who connect and an address.

    Args:
        target: HOST:PORT; who is not there now is tried for each connection.

    Attributes:
        address: Where to connect.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._is_cut, self._is_over = threading.Event(), threading.Event()
        self._passes = threading.Event()
        self._passes.set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """Reset all connections, and each that comes."""
        self._is_cut.set()

    def stall(self) -> None:
        """Pass nothing on, and reset nothing."""
        self._passes.clear()

    def mend(self) -> None:
        """Pass everything on again."""
        self._is_cut.clear()
        self._passes.set()

    def _accept(self) -> None:
        while not self._is_over.is_set():
            if not select.select([self._listener], [], [], LOOK_S)[0]:
                continue
            near, _ = self._listener.accept()
            try:
                far = socket.create_connection(self._target, timeout=WAIT_S)
            except OSError:
                reset(near)
                continue
            thread = threading.Thread(target=self._serve, args=(near, far), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        with contextlib.suppress(OSError):
            while not self._is_over.is_set() and not self._is_cut.is_set():
                self._passes.wait(LOOK_S)
                if self._passes.is_set() and not self._pass(other):
                    break
        reset(near, far)

    @staticmethod
    def _pass(other: dict[socket.socket, socket.socket]) -> bool:
        for ready in select.select(list(other), [], [], LOOK_S)[0]:
            data = ready.recv(PIECE)
            if not data:
                return False
            other[ready].sendall(data)
        return True

    def close(self) -> None:
        """End all connections."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(WAIT_S)
        self._listener.close()

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def reset(*connections: socket.socket) -> None:
    """Close connections as a broken network does."""
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.close()
