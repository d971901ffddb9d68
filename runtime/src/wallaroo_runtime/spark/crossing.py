"""What stages of one task pass on to later stages of the same task: messages that change the worker."""

from collections.abc import Iterable, Iterator

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import NodeKind, Stage


class Handover:
    """Holds the frames that stages have sent until the stages that receive them run.

    The stages of a task run one after the other, so at most the task's share of a micro-batch is held.

    Args:
        ports: Of the frames that are passed on; all others are not its concern.
    """

    def __init__(self, ports: frozenset[int]) -> None:
        self._held: dict[int, list[bytes]] = {port: [] for port in ports}

    def keep(self, outputs: Iterable[pb.Output]) -> list[pb.Output]:
        """Keep what is for later stages; returns the rest."""
        others = []
        for output in outputs:
            if output.port in self._held:
                self._held[output.port].append(output.frame)
            else:
                others.append(output)
        return others

    def take(self, stage: Stage) -> Iterator[bytes]:
        """Yield the frames that a stage receives, in the order in which they were sent."""
        for node in stage.entries:
            if node.kind is NodeKind.RECEIVE:
                yield from self._held[node.port]
