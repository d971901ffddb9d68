"""The address of a gateway or an egress, and the credentials for calls."""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Service:
    """A gateway or an egress that serves over gRPC.

    Attributes:
        kind: `gateway` or `egress`.
        address: HOST:PORT.
        token: Token that every call must carry.
        authority: Certificates (PEM) that must have signed the server's certificate; empty if there is no TLS.
        epoch: Epoch that the service has given to the attached driver; 0 before a driver has attached.
        store: Id of the journal or outbox, 16 hex digits; empty if it is not known yet.
    """

    kind: str
    address: str
    token: str = field(default="", repr=False)
    authority: str = field(default="", repr=False)
    epoch: int = 0
    store: str = ""

    def attached(self, epoch: int, store: str) -> "Service":
        """Return this service with `epoch` and `store`, from its answer when this process became its driver."""
        return replace(self, epoch=epoch, store=store)
