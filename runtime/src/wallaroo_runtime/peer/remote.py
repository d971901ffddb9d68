"""Remote gateways and a remote egress, as a driver sees them."""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.errors import TOPOLOGY, USAGE, RunError
from wallaroo_runtime.peer.configuration import (
    FSYNC_INTERVAL_MS,
    GatewaySource,
    Listener,
    gateway_sources,
    listeners,
    needs_worker,
    tick_interval_ms,
)
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import Away, Client
from wallaroo_runtime.service.credential import read_pem, read_token
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.service.store import PROTOCOL_VERSION
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.outbox.log import Published
from wallaroo_runtime.topology.model import ConnectorSink, ConnectorSource, GeneratorSource, TcpSource, Topology

ATTACH_PATIENCE_S = 15.0
AWAY_LIMIT_S = 60.0
STATUS_S = 0.1
STATUS_CALL_S = 3.0
DRIVER_ID = secrets.token_hex(16)

Attach = Callable[[pb.Driver], Any]


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Which services a run uses instead of processes of its own.

    Attributes:
        gateways: Name of a source, or empty for all others, to HOST:PORT of its gateway; empty: a local process.
        egress: HOST:PORT of the egress; empty: a local process.
        token_file: File with the token.
        authority: File with certificates (PEM) that those of the services are signed by; None: no TLS.
    """

    gateways: Mapping[str, str] = field(default_factory=dict)
    egress: str = ""
    token_file: Path | None = None
    authority: Path | None = None

    def service(self, kind: str, address: str) -> Service:
        """Return how to reach a service.

        Raises:
            RunError: R717, there is no token; R616, R640.
        """
        if self.token_file is None:
            reason = f"--{kind} needs --token-file"
            fix = f"give the file with the token that the {kind} was started with"
            raise RunError.of("R717", USAGE, reason=reason, fix=fix)
        authority = read_pem(self.authority).decode("ascii", "replace") if self.authority else ""
        return Service(kind, address, read_token(self.token_file), authority)


class RemoteProcess:
    """A service that somebody else runs, with the methods that `Process` has.

    Args:
        service: Where it is.
        attach: Makes the request that attaches a driver.

    Attributes:
        name: `gateway` or `egress`.
        service: With its epoch, once `start` was called.
        published: The last micro-batch of an egress, once `start` was called.
    """

    def __init__(self, service: Service, attach: Attach) -> None:
        self.name, self.service, self._attach = service.kind, service, attach
        self.published = Published()
        self._document: dict[str, Any] = {}
        self._end = Position(0, 0, 0)
        self._looked_at = 0.0
        self._away_since: float | None = None
        self._away: Away | None = None

    def start(self, driver: pb.Driver) -> None:
        """Attach as the driver that is served from now on.

        Raises:
            RunError: R641, R642, R643, R647, R648, R649, or what keeps it from listening, e.g. R601.
        """
        reply = Client(self.service, ATTACH_PATIENCE_S).call("Attach", self._attach(driver))
        self.service = self.service.attached(reply.epoch, reply.store)
        if reply.query:
            self.published = Published(reply.query, reply.batch, reply.offsets)
        self._look(Client(self.service))

    def status(self) -> dict[str, Any]:
        """Return what it last said of itself."""
        now = time.monotonic()
        if now - self._looked_at >= STATUS_S:
            self._look(Client(self.service))
        return self._document

    def _look(self, client: Client) -> None:
        try:
            reply = client.look("Status", pb.StatusRequest(epoch=self.service.epoch), STATUS_CALL_S)
            self._document = json.loads(reply.document)
            self._end = Position(reply.end.offset, reply.end.sequence, int(reply.end.journal or "0", 16))
            self._away_since = None
        except Away as error:
            self._away = error
            if self._away_since is None:
                self._away_since = time.monotonic()
        except ValueError as error:
            raise client.broke_rules(reason=f"its status is no JSON: {error}") from error
        self._looked_at = time.monotonic()

    def end(self) -> Position:
        """Return how far its journal went when it last said so."""
        self.status()
        return self._end

    def commit(self, offset: int) -> None:
        """Report to it what is processed."""
        request = pb.CommitRequest(epoch=self.service.epoch, journal=self.service.store, offset=offset)
        Client(self.service, STATUS_CALL_S).call("Commit", request)

    def addresses(self) -> list[tuple[str, str]]:
        """Return name and address of each source that it listens for; none for an egress."""
        return [(str(source["name"]), str(source["address"])) for source in self.status().get("sources", [])]

    def check(self) -> None:
        """Look once.

        Raises:
            RunError: It serves another driver (R644), was away for too long (R642), or has failed.
        """
        status = self.status()
        if status.get("state") == "failed" and status.get("diagnostics"):
            raise RunError([Diagnostic.from_json(finding) for finding in status["diagnostics"]])
        if self._away_since is not None and time.monotonic() - self._away_since > AWAY_LIMIT_S:
            assert self._away is not None
            raise self._away

    def stop(self) -> None:
        """Leave it as it is: senders and receivers notice nothing of a driver that ends."""


def service_names(remote: RemoteOptions) -> tuple[str, ...]:
    """Return what a checkpoint calls the services of a run."""
    gateways = tuple(f"gateway {name}".strip() for name in sorted(remote.gateways))
    return (*gateways, "egress") if remote.egress else gateways


def check_known(directory: object, known: Iterable[str], remote: RemoteOptions) -> None:
    """Refuse other services than those that a checkpoint was begun with.

    Args:
        directory: Of the checkpoint, for the error.
        known: What it calls its services.
        remote: Where the services are said to be.

    Raises:
        RunError: R650.
    """
    before, now = sorted(known), sorted(service_names(remote))
    if before != now:
        raise RunError.of("R650", path=directory, before=_told(before), now=_told(now))


def _told(services: Sequence[str]) -> str:
    return " and ".join(f"remote {name}" for name in services) or "local gateway and egress"


def gateways_of(
    topology: Topology, plan: Plan, options: RemoteOptions, bounds: Bounds, archive: str = ""
) -> dict[str, RemoteProcess]:
    """Return the gateways of a run, not attached, by what names them.

    Args:
        topology: Has the sources.
        plan: Has their ports.
        options: Where the gateways are.
        bounds: Of the journals.
        archive: SHA-256 of the archive that is run; empty: of none.

    Raises:
        RunError: R717, a name is no source's, or a source has no gateway; R647.
    """
    for source in filter(needs_worker, topology.sources()):
        if not archive:
            raise RunError.of("R647", USAGE, source=source.name)
    names = {source.name for source in gateway_sources(topology)}
    for name in options.gateways:
        if name and name not in names:
            reason = f'--gateway: no source is called "{name}"'
            raise RunError.of("R717", USAGE, reason=reason, fix=f"use one of {', '.join(sorted(names))}")
    mine: dict[str, list[GatewaySource]] = {name: [] for name in options.gateways}
    for source in gateway_sources(topology):
        if source.name not in mine and "" not in mine:
            reason = f'source "{source.name}" has no gateway'
            raise RunError.of("R717", USAGE, reason=reason, fix=f"give --gateway {source.name}=H:P")
        mine[source.name if source.name in mine else ""].append(source)
    found = {}
    for name, sources in sorted(mine.items()):
        if sources:
            request = _gateway_request(plan, sources, bounds, tick_interval_ms(topology), archive)
            found[name] = RemoteProcess(options.service("gateway", options.gateways[name]), request)
    return found


def _gateway_request(
    plan: Plan, sources: Sequence[GatewaySource], bounds: Bounds, tick_ms: int, archive: str
) -> Attach:
    heard = [source for source in sources if isinstance(source, Listener)]
    messages = [source_message(source, plan) for source in heard]
    for source, message in zip(heard, messages, strict=True):
        if isinstance(source, ConnectorSource):
            settings = {"max_credits": source.max_credits, "refill_credits": source.refill_credits}
            message.connector.CopyFrom(pb.Connector(cookie=source.cookie, **settings))
        elif needs_worker(source):
            message.header_bytes, message.worker = source.framing.header_bytes, source.worker
    generators = [
        pb.Generator(port=plan.ports[source.path], path=source.path, name=source.name, worker=source.worker)
        for source in sources
        if isinstance(source, GeneratorSource)
    ]
    return lambda driver: pb.AttachJournalRequest(
        driver=driver,
        sources=messages,
        fsync=bounds.journal_fsync,
        fsync_interval_ms=FSYNC_INTERVAL_MS,
        backlog_bytes=bounds.journal_bytes,
        tick_ms=tick_ms,
        generators=generators,
        archive=archive,
    )


def source_message(source: Listener, plan: Plan) -> pb.Source:
    """Return a source as it crosses the network."""
    return pb.Source(
        port=plan.ports[source.path],
        path=source.path,
        name=source.name,
        host=source.host,
        tcp_port=source.port,
        framing=source.framing.kind if isinstance(source, TcpSource) else source.kind,
        max_message_bytes=source.max_message_bytes,
    )


def egress_at(topology: Topology, plan: Plan, options: RemoteOptions, bounds: Bounds) -> RemoteProcess:
    """Return the egress of a run, not attached.

    Raises:
        RunError: P304, it cannot write a sink.
    """
    for transactional in topology.transactional_sinks():
        what, fix = 'a sink of kind "kafka" with exactly_once and a remote egress', "let the driver start the egress"
        raise RunError.of("P304", TOPOLOGY, path=transactional.path, what=what, fix=fix)
    sinks = [
        pb.Sink(
            port=plan.ports[sink.path],
            name=sink.name,
            host=sink.host,
            tcp_port=sink.port,
            cookie=sink.cookie if isinstance(sink, ConnectorSink) else None,
        )
        for sink in topology.tcp_sinks()
    ]

    sources = [source_message(source, plan) for source in listeners(topology)]

    def request(driver: pb.Driver) -> pb.AttachOutboxRequest:
        return pb.AttachOutboxRequest(driver=driver, sinks=sinks, resend_bytes=bounds.resend_bytes, sources=sources)

    return RemoteProcess(options.service("egress", options.egress), request)


def driver_of(application: str, checkpoint: str, store: str, *, fresh: bool) -> pb.Driver:
    """Return who this process is to a service.

    Args:
        application: Name of the application.
        checkpoint: Id of the checkpoint.
        store: Id of the journal or outbox that the checkpoint refers to; empty: of none yet.
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
