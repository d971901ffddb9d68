"""The numbers of a run at one moment, and the reporter that shows them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.topology.model import TcpSource, Topology

STARTING = "starting"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The numbers of a run at one moment, e.g. of messages.

    Attributes:
        state: `running` or `stopped`.
        messages_in: Messages that arrived since the checkpoint began.
        messages_processed: Messages that were processed in finished batches since the checkpoint began.
        messages_out: Messages that receivers have taken since the checkpoint began.
        dead_letters: Messages that user code failed on or a sink never takes, since the checkpoint began.
        batches: Micro-batches of this run.
        rate: Messages processed per second, over the last seconds.
        lag: Messages that arrived and are not processed yet; None if it is not known.
        waiting: Messages that were emitted and that sinks have not taken yet.
        bytes_by_file: Bytes of journals that tasks have read from files in this run.
        bytes_by_grpc: Bytes of journals that tasks have read from gateways in this run.
        run: `messages_in`, `messages_out`, `dead_letters` and `RUN_COUNTERS`, counted since this run began.
    """

    state: str
    messages_in: int
    messages_processed: int
    messages_out: int
    dead_letters: int
    batches: int
    rate: float
    lag: int | None
    waiting: int = 0
    bytes_by_file: int = 0
    bytes_by_grpc: int = 0
    run: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_quiet(self) -> bool:
        """True if no message is being processed or waits."""
        return not (self.rate or self.lag or self.waiting)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return {**asdict(self), "rate": round(self.rate, 1)}


class Listening(NamedTuple):
    """A source that listens at a TCP address.

    Attributes:
        address: HOST:PORT.
        framing: Framing of its bytes, as `wallaroo send --framing` names it; `worker` if the decoder cuts them; or
            `connector`.
    """

    name: str
    address: str
    framing: str


def listening(topology: Topology, addresses: Iterable[tuple[str, str]]) -> list[Listening]:
    """Return those sources of an application that listen, with their addresses.

    Args:
        addresses: Name and address of each source.
    """
    framings = {
        source.name: source.framing.kind if isinstance(source, TcpSource) else source.kind
        for source in topology.sources()
    }
    return [Listening(name, address, framings.get(name, "")) for name, address in addresses]


class Reporter(Protocol):
    """Notifies the user of events in a run. One thread calls all methods."""

    def note(self, text: str) -> None:
        """Report an event that needs no action."""

    def output(self, worker: str, line: str) -> None:
        """Show a line that a worker has printed."""

    def warn(self, finding: Diagnostic) -> None:
        """Report a problem that does not end the run."""

    def doing(self, state: str, what: str, *, is_shared: bool = False) -> None:
        """Report work that may take seconds: at the start of a run, for a changed program, or at the end.

        Args:
            state: `starting`, `trying` or `stopping`.
            what: The work, in words.
            is_shared: Whether programs of the user print to the same terminal meanwhile.
        """

    def event(self, state: str, text: str, findings: Sequence[Diagnostic] = ()) -> None:
        """Report a change of a watched program and the consequence, or a start that was interrupted.

        Args:
            state: `changed`, `kept`, `waiting` or `stopped`.
            text: The event, in words.
            findings: Errors of the program.
        """

    def initialized(self, sources: Sequence[Listening], checkpoint: Path | None) -> None:
        """Report that the run is ready: the addresses at which sources listen, and that the query is active."""

    def progress(self, snapshot: Snapshot) -> None:
        """Show the present numbers of the run, e.g. of messages. Called about once a second, and at the end."""
