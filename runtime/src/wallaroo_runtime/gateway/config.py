"""What the gateway's configuration file says."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.gateway.framing import KINDS
from wallaroo_runtime.service.config import read_config

CONNECTOR = "connector"
BACKLOG_BYTES = 4 << 30
FSYNC_POLICIES = ("batch", "interval", "never")


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One source: where it listens, and how its bytes are cut.

    Attributes:
        port: Number of the source in the plan; is part of the frames.
        path: Path of the source in the topology.
        name: Name of the source.
        host: Host name or address to listen at.
        tcp_port: TCP port; 0 lets the system choose one.
        framing: A framing of the topology; a worker framing has `target` too, the worker's gRPC target. The kind
            `connector` has `cookie`, `max_credits` and `refill_credits`.
        max_message_bytes: Longest payload.
    """

    port: int
    path: str
    name: str
    host: str
    tcp_port: int
    framing: Mapping[str, Any]
    max_message_bytes: int


@dataclass(frozen=True, slots=True)
class GeneratorConfig:
    """A source whose messages a worker makes.

    Attributes:
        port: Number of the source in the plan; is part of the frames.
        path: Path of the source in the topology.
        name: Name of the source.
        target: The worker's gRPC target.
        maker: Where its maker is found, `module:name`; empty: it asks the worker.
    """

    port: int
    path: str
    name: str
    target: str
    maker: str = ""


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """What the gateway must know.

    Attributes:
        journal: Directory of the journal.
        status: The status file.
        sources: What to listen for.
        generators: Whose messages a worker makes.
        fsync: batch: as often as the disk can; interval: every `fsync_interval_ms` at most; never: the system decides.
        fsync_interval_ms: See `fsync`.
        backlog_bytes: Reading pauses when this much is journaled and not committed.
        buffer_bytes: Limit for the sum of all messages that have not arrived whole.
        max_connections: Connections beyond that wait in the kernel.
        segment_bytes: Size of a journal segment.
        driver: pid and start time of the driver; None: none is watched until one announces itself.
        linger_s: How long to go on without a driver.
        tick_ms: Time from one tick to the next; 0: the application has no windows.
        stall_s: How long the peer of a large half message may be late; see `stall`.
        hello_s: How long a connection to a connector source may be without HELLO.
    """

    journal: Path
    status: Path
    sources: tuple[SourceConfig, ...]
    generators: tuple[GeneratorConfig, ...] = ()
    fsync: str = "interval"
    fsync_interval_ms: int = 50
    backlog_bytes: int = BACKLOG_BYTES
    buffer_bytes: int = 256 * 1024 * 1024
    max_connections: int = 10_000
    segment_bytes: int = 64 * 1024 * 1024
    driver: Mapping[str, int] | None = None
    linger_s: float = 60
    tick_ms: int = 0
    stall_s: float = 60
    hello_s: float = 10

    @classmethod
    def read(cls, path: Path) -> "GatewayConfig":
        """Read a configuration file.

        Raises:
            RunError: R616, it cannot be read; R716, it is wrong.
        """
        document = read_config(path)
        try:
            sources = tuple(SourceConfig(**source) for source in document.pop("sources"))
            generators = tuple(GeneratorConfig(**generator) for generator in document.pop("generators", ()))
            journal, status = Path(document.pop("journal")), Path(document.pop("status"))
            config = cls(journal, status, sources, generators, **document)
            config.check()
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            what, fix = f"gateway configuration {path}", "start the gateway with `wallaroo run`"
            raise RunError.of("R716", USAGE, what=what, reason=error, fix=fix) from error
        return config

    def check(self) -> None:
        """Raise ValueError when a value is not possible."""
        if self.fsync not in FSYNC_POLICIES:
            reason = f"fsync is {self.fsync!r}; expected one of {', '.join(FSYNC_POLICIES)}"
            raise ValueError(reason)
        for source in self.sources:
            if source.framing["kind"] not in (*KINDS, "worker", CONNECTOR):
                reason = f"framing of source {source.name!r} is {source.framing['kind']!r}"
                raise ValueError(reason)
