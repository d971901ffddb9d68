"""Declares the limits of a gateway that the driver does not configure."""

from dataclasses import dataclass

CONNECTOR, WORKER = "connector", "worker"
BACKLOG_BYTES = 4 << 30
FSYNC_POLICIES = ("batch", "interval", "never")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a gateway that the driver does not configure.

    Attributes:
        buffer_bytes: Limit for the total size of all partly received messages.
        max_connections: Limit for open connections; further connections wait in the kernel.
        segment_bytes: Size of a journal segment.
        stall_s: Seconds by which a large, partly received message may be late; see `partial_message`.
        hello_s: Seconds within which a connection to a connector source must send HELLO.
        look_s: Seconds between two checks for stalled connections and a full disk. After each check the status is
            written.
    """

    buffer_bytes: int = 256 * 1024 * 1024
    max_connections: int = 10_000
    segment_bytes: int = 64 * 1024 * 1024
    stall_s: float = 60
    hello_s: float = 10
    look_s: float = 1
