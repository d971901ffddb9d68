"""A gateway in a thread of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wallaroo_runtime.gateway.gateway import Gateway

END_S = 90.0


@contextmanager
def in_thread(gateway: Gateway) -> Iterator[Gateway]:
    """Run a gateway, which ends in good order."""
    thread = threading.Thread(target=gateway.run)
    thread.start()
    try:
        yield gateway
    finally:
        gateway.stop()
        thread.join(END_S)
    assert not thread.is_alive()
