"""The remote gateways and egress of a run, and the identity that a driver sends to them."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.peer.configuration import GatewaySource, gateway_sources, needs_worker
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION
from wallaroo_runtime.service.credential import TOKEN_FILE, read_certificates, read_token
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.topology.model import Topology

DRIVER_ID = secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """The remote services that a run uses instead of local processes.

    Attributes:
        gateways: HOST:PORT of gateways by name of a source; the empty name is for all other sources. If this is empty,
            the gateway is a local process.
        egress: HOST:PORT of the egress; empty if the egress is a local process.
        token_file: File with the token for calls of the services.
        authority: File with certificates (PEM) that have signed the services' certificates; None if there is no TLS.
    """

    gateways: Mapping[str, str] = field(default_factory=dict)
    egress: str = ""
    token_file: Path | None = None
    authority: Path | None = None

    def service(self, kind: str, address: str) -> Service:
        """Return the service at an address, with the credentials for calls.

        Raises:
            RunError: R608 if there is no token file; R616, R640 or R716 if a file cannot be used.
        """
        if self.token_file is None:
            reason = f"--{kind} needs --conf {TOKEN_FILE}=FILE"
            fix = f"give the file with the token that the {kind} was started with"
            raise RunError.of("R608", USAGE, reason=reason, fix=fix)
        authority = read_certificates(self.authority).decode("ascii", "replace") if self.authority else ""
        return Service(kind, address, read_token(self.token_file), authority)

    def check(self) -> None:
        """Check the credentials for the remote services. No service is called.

        Raises:
            RunError: As `service`.
        """
        for address in self.gateways.values():
            self.service("gateway", address)
        if self.egress:
            self.service("egress", self.egress)


def service_names(remote: RemoteOptions) -> tuple[str, ...]:
    """Return the names of a run's remote services, as a checkpoint records them."""
    gateways = tuple(f"gateway {name}".strip() for name in sorted(remote.gateways))
    return (*gateways, "egress") if remote.egress else gateways


def check_known(directory: object, known: Iterable[str], remote: RemoteOptions) -> None:
    """Refuse services other than the services with which a checkpoint was begun.

    Args:
        directory: Directory of the checkpoint, for the error.
        known: Names of the services in the checkpoint.
        remote: Services of this run.

    Raises:
        RunError: R615 if the services differ.
    """
    before, now = sorted(known), sorted(service_names(remote))
    if before != now:
        raise RunError.of(
            "R615", path=directory, reason=f"it was begun with {_told(before)}; this run has {_told(now)}"
        )


def _told(services: Sequence[str]) -> str:
    return " and ".join(f"remote {name}" for name in services) or "local gateway and egress"


def sources_by_gateway(topology: Topology, options: RemoteOptions) -> dict[str, list[GatewaySource]]:
    """Return the sources that each remote gateway of a run serves, by the gateway's name.

    Raises:
        RunError: R608 if no source has a name, or a source has no gateway; R647 if a source needs a worker.
    """
    for source in filter(needs_worker, topology.sources()):
        raise RunError.of("R647", USAGE, source=source.name)
    names = {source.name for source in gateway_sources(topology)}
    for name in options.gateways:
        if name and name not in names:
            reason = f'--gateway: no source is called "{name}"'
            raise RunError.of("R608", USAGE, reason=reason, fix=f"use one of {', '.join(sorted(names))}")
    mine: dict[str, list[GatewaySource]] = {name: [] for name in sorted(options.gateways)}
    for source in gateway_sources(topology):
        if source.name not in mine and "" not in mine:
            reason = f'source "{source.name}" has no gateway'
            raise RunError.of("R608", USAGE, reason=reason, fix=f"give --gateway {source.name}=H:P")
        mine[source.name if source.name in mine else ""].append(source)
    # If Spark reads all sources, the first gateway still writes ticks and visits.
    return {name: sources for name, sources in mine.items() if sources} or dict(list(mine.items())[:1])


def driver_identity(application: str, checkpoint: str, store: str, *, fresh: bool) -> pb.Driver:
    """Return the identity with which this process attaches to a gateway or egress as its driver.

    Args:
        application: Name of the application.
        checkpoint: Id of the checkpoint.
        store: Id of the journal or outbox that the checkpoint refers to; empty if it refers to none yet.
        fresh: Whether to start over.
    """
    return pb.Driver(
        protocol_version=PROTOCOL_VERSION,
        id=DRIVER_ID,
        application=application,
        checkpoint=checkpoint,
        store=store,
        fresh=fresh,
    )
