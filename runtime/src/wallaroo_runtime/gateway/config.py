"""The gateway's own configuration, besides the driver's."""

from dataclasses import dataclass

CONNECTOR, WORKER = "connector", "worker"
BACKLOG_BYTES = 4 << 30
FSYNC_POLICIES = ("batch", "interval", "never")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that no driver changes.

    Attributes:
        buffer_bytes: Limit for the sum of all messages that have not arrived whole.
        max_connections: Connections beyond that wait in the kernel.
        segment_bytes: Size of a journal segment.
        stall_s: How long the peer of a large half message may be late; see `stall`.
        hello_s: How long a connection to a connector source may be without HELLO.
        look_s: How often to look for what stalls or is full, and to write the status.
    """

    buffer_bytes: int = 256 * 1024 * 1024
    max_connections: int = 10_000
    segment_bytes: int = 64 * 1024 * 1024
    stall_s: float = 60
    hello_s: float = 10
    look_s: float = 1
