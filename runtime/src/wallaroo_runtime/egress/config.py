"""What the egress's configuration file says."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.service.config import read_config


@dataclass(frozen=True, slots=True)
class SinkConfig:
    """One sink: its number in the plan, its name, and where its peer listens.

    Attributes:
        cookie: Of a connector that takes transactions.
        kafka: `application`, `brokers`, `topic` and `options` of a topic that is written in transactions.
    """

    port: int
    name: str
    host: str
    tcp_port: int
    cookie: str | None = None
    kafka: Mapping[str, Any] | None = None

    @property
    def address(self) -> str:
        """Return HOST:PORT."""
        return f"[{self.host}]:{self.tcp_port}" if ":" in self.host else f"{self.host}:{self.tcp_port}"


@dataclass(frozen=True, slots=True)
class EgressConfig:
    """What the egress must know.

    Attributes:
        outbox: Directory of the outbox.
        status: The status file.
        sinks: Where to deliver.
        driver: pid and start time of the driver; None: none is watched until one announces itself.
        linger_s: How long to go on without a driver.
        resend_bytes: How much of what a peer's TCP had acknowledged is sent once more after a reconnect.
        drain_s: How long to go on delivering when told to stop.
    """

    outbox: Path
    status: Path
    sinks: tuple[SinkConfig, ...]
    driver: Mapping[str, int] | None = None
    linger_s: float = 60
    resend_bytes: int = 0
    drain_s: float = 5

    @classmethod
    def read(cls, path: Path) -> "EgressConfig":
        """Read a configuration file.

        Raises:
            RunError: R616, it cannot be read; R716, it is wrong.
        """
        document = read_config(path)
        try:
            sinks = tuple(SinkConfig(**sink) for sink in document.pop("sinks"))
            outbox, status = Path(document.pop("outbox")), Path(document.pop("status"))
            return cls(outbox, status, sinks, **document)
        except (TypeError, KeyError, AttributeError) as error:
            what, fix = f"egress configuration {path}", "start the egress with `wallaroo run`"
            raise RunError.of("R716", USAGE, what=what, reason=error, fix=fix) from error
