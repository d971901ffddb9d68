"""A run's mode, which is chosen here and nowhere else: micro-batches or real-time mode."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.manifest import REALTIME
from wallaroo_runtime.peer.configuration import Starts
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.run.microbatch import MicroBatchMode
from wallaroo_runtime.run.options import CheckpointOptions, RunOptions, SparkOptions
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.run.realtime import RealTimeMode
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.topology.model import Topology

if TYPE_CHECKING:
    from wallaroo_runtime.spark.options import QueryOptions
    from wallaroo_runtime.spark.running import Query


class Mode(Protocol):
    """A trigger of Spark, and its consequences for the parts of a run."""

    @property
    def reads_kafka(self) -> bool:
        """True if Spark reads topics; otherwise the gateway reads them."""
        ...

    @property
    def quiet_look_s(self) -> float:
        """Seconds from one look at a run without messages to the next."""
        ...

    def check(self, options: RunOptions, topology: Topology) -> None:
        """Refuse an application that the mode cannot run, before anything is started.

        Raises:
            RunError: R755 if the mode cannot run the application.
        """
        ...

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the bounds of a run."""
        ...

    def layout(self, spark: SparkOptions) -> tuple[int, int]:
        """Return the shuffle partitions of a new checkpoint, and the buckets of each."""
        ...

    def settings(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of Spark, including the user's."""
        ...

    def starts(self, topology: Topology, checkpoint: Checkpoint, options: RunOptions) -> Starts | None:
        """Return the offsets at which gateways begin, and may end, to read topics; None if they read no topics.

        Raises:
            RunError: R673, R738, R792 and others if a topic cannot be read on.
        """
        ...

    def is_counted(self, topology: Topology) -> bool:
        """Return whether gateways take all messages, so that their count is the number of messages."""
        ...

    def begin(
        self, session: Any, plan: Plan, checkpoint: Checkpoint, options: CheckpointOptions, peers: Peers,
        reporter: Reporter,
    ) -> dict[str, str]:  # fmt: skip
        """Prepare the topics that are read, and the tables of a new checkpoint; returns the topics' ids.

        Raises:
            RunError: A topic cannot be read on.
        """
        ...

    def start(self, session: Any, plan: Plan, topology: Topology, options: "QueryOptions", peers: Peers) -> "Query":
        """Start the query.

        Raises:
            RunError: The worker does not start or must not be used.
        """
        ...

    def has_room(self, master: str) -> bool:
        """Return whether Spark has a thread left for questions about states."""
        ...


def chosen_mode(options: RunOptions) -> Mode:
    """Return the mode that the options name."""
    return RealTimeMode() if options.mode == REALTIME else MicroBatchMode()
