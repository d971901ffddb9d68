"""Finds the gateway of an application that runs on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service.client import close_channel
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.service.local import socket_in


@contextmanager
def local_gateway(checkpoint: Path, away: RunError) -> Iterator[Service]:
    """Yield the gateway of a checkpoint for calls in the block. The application must run on this machine.

    Args:
        away: Error to raise if there is no gateway.
    """
    if not (checkpoint / "gateway" / "socket").exists():
        raise away
    with socket_in(checkpoint / "gateway") as path:
        service = Service("gateway", f"unix:{path}")
        try:
            yield service
        finally:
            close_channel(service)
