"""The mode of a run, micro-batches or real-time, which is chosen only here."""

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
    """The way in which Spark runs the plan, with the consequences for all parts of a run."""

    @property
    def reads_kafka(self) -> bool:
        """True if Spark reads topics of Kafka. Otherwise the gateway reads them."""
        ...

    @property
    def quiet_look_s(self) -> float:
        """Seconds between two checks of a run without messages."""
        ...

    def check(self, options: RunOptions, topology: Topology) -> None:
        """Refuse an application that the mode cannot run, before anything is started.

        Raises:
            RunError: R755 if the mode cannot run the application.
        """
        ...

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the bounds of a run in this mode, from the bounds of the command line."""
        ...

    def layout(self, spark: SparkOptions) -> tuple[int, int]:
        """Return the number of shuffle partitions of a new checkpoint, and the number of buckets in each."""
        ...

    def settings(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """Return the settings for Spark: those of the mode, and those that the user has chosen."""
        ...

    def starts(self, topology: Topology, checkpoint: Checkpoint, options: RunOptions) -> Starts | None:
        """Return where gateways begin to read topics, and where they may end; None if gateways read no topics.

        Raises:
            RunError: R673, R738, R792 and others if a topic cannot be read from the place where reading must begin.
        """
        ...

    def is_counted(self, topology: Topology) -> bool:
        """Return whether all messages come through gateways, so that the gateways' counts are complete."""
        ...

    def begin(
        self, session: Any, plan: Plan, checkpoint: Checkpoint, options: CheckpointOptions, peers: Peers,
        reporter: Reporter,
    ) -> dict[str, str]:  # fmt: skip
        """Prepare topics and the tables of a new checkpoint, before the query starts. Return the ids of topics.

        Raises:
            RunError: A topic cannot be read from where the checkpoint ended.
        """
        ...

    def start(self, session: Any, plan: Plan, topology: Topology, options: "QueryOptions", peers: Peers) -> "Query":
        """Start the query.

        Raises:
            RunError: The worker does not start or must not be used.
        """
        ...

    def has_room(self, master: str) -> bool:
        """Return whether Spark has a free thread for reading states while the query runs."""
        ...


def chosen_mode(options: RunOptions) -> Mode:
    """Return the mode that the options name."""
    return RealTimeMode() if options.mode == REALTIME else MicroBatchMode()
