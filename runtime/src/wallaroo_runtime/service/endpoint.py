"""How a client finds a gateway or an egress."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Service:
    """A gateway or an egress that serves over gRPC.

    Attributes:
        kind: `gateway` or `egress`.
        address: HOST:PORT.
        token: What every call proves itself with.
        authority: Certificates (PEM) that the server's must be signed by; empty: no TLS.
        epoch: What the service answered when the driver attached; 0: not attached yet.
        store: Id of the journal or outbox, 16 hex digits; empty: not known yet.
    """

    kind: str
    address: str
    token: str = field(default="", repr=False)
    authority: str = field(default="", repr=False)
    epoch: int = 0
    store: str = ""

    def attached(self, epoch: int, store: str) -> "Service":
        """Return the same service as a driver with that epoch uses it."""
        return replace(self, epoch=epoch, store=store)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object, without the token."""
        return {name: value for name, value in asdict(self).items() if name != "token"}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], token: str) -> "Service":
        """Read the form that `to_json` wrote."""
        return cls(**value, token=token)
