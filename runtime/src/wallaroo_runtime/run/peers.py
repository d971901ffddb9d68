"""Gateway and egress of a run: local processes or remote services."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Protocol

from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.peer.configuration import egress_of, gateway_of, needs_worker
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.peer.process import Process, announce
from wallaroo_runtime.peer.remote import RemoteOptions, RemoteProcess, driver_of, egress_at, gateways_of
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace
from wallaroo_runtime.topology.model import Topology


class Tail(Protocol):
    """What the driver itself needs of a journal."""

    def end(self) -> Position:
        """Return how far it goes."""

    def commit(self, offset: int) -> None:
        """Release everything below `offset`."""


class Peers:
    """What takes the messages of a run, and what delivers its output.

    Args:
        topology: Of the application.
        plan: Of the topology.
        checkpoint: Of the run.
        remote: Which services are remote.
        bounds: Of journal and outbox.
        fresh: Whether the run starts over.
        archive: SHA-256 of the archive that is run; empty: of none.

    Attributes:
        gateways: Started by `start`, or by `start_gateway` when they need a worker.
        tails: The journal of each.
        journals: Where tasks find them.
        output: Where tasks and driver put output.
        received_before: Messages that had come before this run.
        delivered_before: Messages that receivers had got before this run.

    Raises:
        RunError: R717 or R647, services and topology do not fit.
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
        archive: str = "",
    ) -> None:
        self._topology, self._plan, self._checkpoint, self._bounds = topology, plan, checkpoint, bounds
        self._fresh = fresh
        self.gateways: list[Process | RemoteProcess] = []
        self._remote = gateways_of(topology, plan, remote, bounds, archive) if remote.gateways else {}
        self.tails: list[Tail] = list(self._remote.values())
        self.egress: Process | RemoteProcess = (
            egress_at(topology, plan, remote, bounds)
            if remote.egress
            else egress_of(topology, plan, checkpoint.path, bounds)
        )
        self.journals: tuple[JournalPlace, ...] = ()
        self.output = OutputPlace.on(checkpoint.path)
        self.received_before = self.delivered_before = 0

    @property
    def waits_for_worker(self) -> bool:
        """Whether the gateway can only be started when the workers run."""
        return any(map(needs_worker, self._topology.sources()))

    def start(self, stack: ExitStack) -> None:
        """Start or attach everything but a gateway that needs a worker; `stack` ends it.

        Raises:
            RunError: Why something does not start, or is not what the checkpoint refers to.
        """
        announce(self._checkpoint.path)
        if not self._remote:
            directory = self._checkpoint.path / "journal"
            if not (directory / "head").exists():
                JournalWriter(directory).close()  # the query needs one that exists
            self.journals, self.tails = (JournalPlace(str(directory)),), [JournalReader(directory)]
            self._checkpoint.record_journal(f"{JournalReader(directory).end().journal_id:016x}")
        if isinstance(self.egress, RemoteProcess):
            self._attach("egress", self.egress)
            self._checkpoint.check_published(self.egress.published)
            self.output = OutputPlace(service=self.egress.service)
        else:
            _start(stack, self.egress)
        self.delivered_before = self.delivered()
        for name, gateway in self._remote.items():
            self._attach(f"gateway {name}".strip(), gateway)
            self.gateways.append(gateway)
            self.journals = (*self.journals, JournalPlace(service=gateway.service))
        self.received_before = self.received()
        # A port that is in use should be reported at once. Only where workers cut the messages must they run first.
        if not self._remote and not self.waits_for_worker:
            self.start_gateway(stack, {})

    def start_gateway(self, stack: ExitStack, targets: Mapping[str, str]) -> None:
        """Start the local gateway.

        Args:
            stack: Ends it.
            targets: Name of a worker to its gRPC target, for sources that a worker cuts.
        """
        gateway = gateway_of(self._topology, self._plan, self._checkpoint.path, targets, self._bounds)
        _start(stack, gateway)
        self.gateways.append(gateway)

    def _attach(self, name: str, service: RemoteProcess) -> None:
        store = self._checkpoint.services[name]
        application, checkpoint = self._topology.name, self._checkpoint.id
        service.start(driver_of(application, checkpoint, store, fresh=self._fresh))
        self._checkpoint.record(name, service.service.store)

    def addresses(self) -> list[tuple[str, str]]:
        """Return name and address of each source that is listened for."""
        return [found for gateway in self.gateways for found in gateway.addresses()]

    def delivered(self) -> int:
        """Return how many messages receivers have got from the egress since the checkpoint began."""
        return sum(int(sink.get("messages", 0)) for sink in self.egress.status().get("sinks", []))

    def received(self) -> int:
        """Return how many messages have come since the checkpoint began."""
        return sum(tail.end().messages for tail in self.tails)


def _start(stack: ExitStack, process: Process) -> None:
    stack.callback(process.stop)
    process.start()
    process.wait_ready()
