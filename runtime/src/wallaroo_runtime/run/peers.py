"""The gateways and the egress of a run, which are local or remote."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.configuration import (
    GatewaySource,
    Starts,
    egress_request,
    gateway_request,
    gateway_sources,
    needs_worker,
)
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.peer.local import LocalPeer
from wallaroo_runtime.peer.peer import Peer, Request
from wallaroo_runtime.peer.remote import RemoteOptions, driver_identity, sources_by_gateway
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.service.driver import announce
from wallaroo_runtime.storage.journal.head import read_head
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace
from wallaroo_runtime.topology.model import SparkSink, Topology
from wallaroo_runtime.worker.step_count import VisitCounts

LOCAL = "local"  # id of the checkpoint for a local service, which serves only one checkpoint


class Peers:
    """The gateways that receive a run's messages, and the egress that delivers its output.

    Args:
        fresh: Whether the run starts over.
        starts: Where the gateway begins to read the Kafka sources in real-time mode; None if Spark reads these sources.
        sets_aside: Whether records that Kafka never takes become dead letters.

    Attributes:
        waits_for_worker: Whether the gateway needs a worker, so that it serves no sources before `serve_sources`.
        output: Place to which tasks and driver write output.
        received_before: Number of messages that had come before this run.
        delivered_before: Number of messages that receivers had taken before this run.
        refused_before: Number of messages that receivers had refused before this run.

    Raises:
        RunError: R608 or R647 if services and topology do not fit.
    """

    def __init__(
        self,
        topology: Topology,
        plan: Plan,
        checkpoint: Checkpoint,
        remote: RemoteOptions,
        bounds: Bounds,
        *,
        fresh: bool,
        starts: Starts | None = None,
        sets_aside: bool = False,
    ) -> None:
        self._topology, self._plan, self._checkpoint, self._bounds = topology, plan, checkpoint, bounds
        self._remote, self._fresh, self._starts, self._sets_aside = remote, fresh, starts, sets_aside
        self._sources: list[list[GatewaySource]] = [list(gateway_sources(topology))]
        self._names = ["gateway"]
        self.gateways: list[Peer] = [LocalPeer("gateway", checkpoint.path)]
        self.egress: Peer = LocalPeer("egress", checkpoint.path)
        self.waits_for_worker = not remote.gateways and any(map(needs_worker, topology.sources()))
        if remote.gateways:
            served = sources_by_gateway(topology, remote)
            self._names, self._sources = [f"gateway {name}".strip() for name in served], list(served.values())
            self.gateways = [Peer(remote.service("gateway", remote.gateways[name])) for name in served]
        if remote.egress:
            self.egress = Peer(remote.service("egress", remote.egress))
        self.journals: tuple[JournalPlace, ...] = ()
        self.output = OutputPlace()
        self.received_before = self.delivered_before = self.refused_before = 0

    @contextmanager
    def telling_refused(self, warn: Callable[[Diagnostic], None]) -> Iterator[None]:
        """After the block, report the messages that gateways have read but could not write to the journal (R800).

        Raises:
            RunError: R800 if there are such messages and the block raised no error.
        """
        try:
            yield
        except BaseException as error:
            known = {finding.message for finding in getattr(error, "diagnostics", ())}
            for finding in self._refused():
                if finding.message not in known:
                    warn(finding)
            raise
        if findings := self._refused():
            raise RunError(findings)

    def _refused(self) -> list[Diagnostic]:
        findings = (
            Diagnostic.from_json(each) for peer in self.gateways for each in peer.status().get("diagnostics", ())
        )
        return [finding for finding in findings if finding.kind is Kind.AT_END]

    def launch(self, stack: ExitStack) -> None:
        """Start the local gateways and egress without waiting for them; `stack` ends them."""
        announce(self._checkpoint.path)
        for peer in (self.egress, *self.gateways):
            stack.callback(peer.stop)
            peer.launch()

    def start(self) -> None:
        """Attach the driver to the egress and the gateways after `launch`, except to a gateway that needs a worker.

        Raises:
            RunError: A peer does not start, or is not the peer that the checkpoint refers to.
        """
        head = None if self._remote.gateways else read_head(self._checkpoint.path / "journal")
        request = egress_request(self._topology, self._plan, self._bounds, sets_aside=self._sets_aside)
        self._attach("egress", self.egress, request)
        if "egress" in self._checkpoint.manifest.services:
            self._checkpoint.check_published(self.egress.published)
        self.output = self.egress.output()
        self.delivered_before, self.refused_before = self.delivered(), self.refused()
        # Attach at once, to report early that a port is in use. Workers that cut messages must run before.
        if self.waits_for_worker:
            self.gateways[0].wait_ready()
            self._checkpoint.record_journal(f"{self.gateways[0].end().journal_id:016x}")
        else:
            for name, gateway, sources in zip(self._names, self.gateways, self._sources, strict=True):
                self._attach(name, gateway, self._gateway_request(sources))
        self.journals = tuple(gateway.journal() for gateway in self.gateways)
        # A local gateway reads topics as soon as it is attached, so the journal's head was read before.
        self.received_before = self.received() if self._remote.gateways else 0 if head is None else head.messages
        if self._checkpoint.manifest.services:
            self._checkpoint.check_repeated(self._remote, is_attached=True)

    def serve_sources(self, targets: Mapping[str, str]) -> None:
        """Attach to the local gateway that needs workers; they must run. From now on it listens for the sources.

        Args:
            targets: gRPC targets of workers by their names, for sources that a worker cuts or makes.
        """
        self._attach(self._names[0], self.gateways[0], self._gateway_request(self._sources[0], targets))
        self.waits_for_worker = False

    def _gateway_request(self, sources: list[GatewaySource], targets: Mapping[str, str] | None = None) -> Request:
        return gateway_request(
            self._topology,
            self._plan,
            sources,
            self._bounds,
            targets=targets,
            starts=self._starts,
        )

    def _attach(self, name: str, peer: Peer, request: Request) -> None:
        application, services = self._topology.name, self._checkpoint.manifest.services
        if name in services:
            driver = driver_identity(application, self._checkpoint.manifest.id, services[name], fresh=self._fresh)
        else:
            driver = driver_identity(application, LOCAL, "", fresh=False)
        request.driver.CopyFrom(driver)
        peer.attach(request)
        if name in services:
            self._checkpoint.record(name, peer.service.store)
        elif peer is not self.egress:
            self._checkpoint.record_journal(peer.service.store)

    def tell_visits(self, counts: VisitCounts, done: int = 0) -> None:
        """Send the number of keys of each visit to all gateways. The gateway that took the visit reports the number.

        Args:
            counts: Counts by id of the visit.
            done: As for `Peer.tell_visits`.
        """
        for gateway in self.gateways:
            gateway.tell_visits(counts, done)

    def topic_ids(self) -> dict[str, str]:
        """Return the ids of topics that the gateway reads, by path of the source; empty ids if brokers give none."""
        return {path: start.topic_id for path, start in (self._starts or {}).items()}

    def addresses(self) -> list[tuple[str, str]]:
        """Return name and address of each source for which a gateway listens."""
        return [address for gateway in self.gateways for address in gateway.addresses()]

    def delivered(self) -> int:
        """Return the number of messages that receivers have taken from the egress since the checkpoint began."""
        return self._of_sinks("messages")

    def refused(self) -> int:
        """Return the number of messages that sinks have refused since the checkpoint began. They are dead letters."""
        return self._of_sinks("refused")

    def _of_sinks(self, name: str) -> int:
        status = self.egress.status()
        return sum(int(sink.get(name, 0)) for sink in (*status.get("sinks", ()), status.get("gone", {})))

    def undelivered(self) -> int:
        """Return the number of published messages that the egress has not delivered; -1 if it is not known."""
        sinks = (sink for sink in self._topology.sinks() if not isinstance(sink, SparkSink))
        return self.egress.undelivered([self._plan.ports[sink.path] for sink in sinks])

    def received(self) -> int:
        """Return the number of messages that gateways have received since the checkpoint began."""
        return sum(gateway.end().messages for gateway in self.gateways)
