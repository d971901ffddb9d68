"""The micro-batch mode of a run. Real-time mode (`realtime.py`) is a subclass."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.peer.configuration import Starts
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.plan.bucket import BUCKETS_PER_PARTITION
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.run.goka import begin_groups, check_left
from wallaroo_runtime.run.options import CheckpointOptions, RunOptions, SparkOptions
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.run.topics import check_sinks, create_topics, until_answered
from wallaroo_runtime.topology.model import KafkaSource, SparkSource, Topology

if TYPE_CHECKING:
    from wallaroo_runtime.spark.options import QueryOptions
    from wallaroo_runtime.spark.query import RunningQuery
    from wallaroo_runtime.spark.realtime.query import RealTimeQuery

    Query: TypeAlias = RunningQuery | RealTimeQuery


class MicroBatchMode:
    """The micro-batch mode: how Spark runs the plan, and the checks, limits and settings that depend on it.

    In this mode Spark reads journals and topics, and commits each micro-batch.

    Attributes:
        reads_kafka: Whether Spark reads topics of Kafka. Otherwise the gateway reads them.
        quiet_look_s: Seconds between two checks of a run without messages.
    """

    reads_kafka = True
    quiet_look_s = 0.1  # frequent checks measure latencies exactly, also for the first message after a pause

    def check(self, options: RunOptions, topology: Topology) -> None:
        """Refuse an application that the mode cannot run, before anything is started. This mode runs all.

        Raises:
            RunError: R755 if the mode cannot run the application.
        """

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the limits of journal, outbox and state cache in this mode, from those of the command line."""
        return bounds

    def layout(self, spark: SparkOptions) -> tuple[int, int]:
        """Return the number of shuffle partitions of a new checkpoint, and the number of buckets in each."""
        return spark.partitions, BUCKETS_PER_PARTITION

    def settings(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """Return the settings for Spark: those of the mode, and those that the user has chosen."""
        return dict(chosen)

    def starts(
        self, topology: Topology, checkpoint: Checkpoint, options: RunOptions, reporter: Reporter
    ) -> Starts | None:
        """Create missing topics, and check the topics of sinks. May be called again after an error.

        Returns:
            Where gateways begin to read topics, and where they may end; None if Spark reads the topics.

        Raises:
            RunError: R673, R738, R792 and others if a topic cannot be read from the place where reading must begin, or
                cannot be written.
        """
        check_left(checkpoint)
        create_topics(topology, reporter.note)
        check_sinks(topology)
        return None

    def is_counted(self, topology: Topology) -> bool:
        """Return whether all messages come through gateways, so that the gateways' counts are complete."""
        return not any(isinstance(each, KafkaSource | SparkSource) for each in topology.sources())

    def begin(
        self, session: Any, plan: Plan, checkpoint: Checkpoint, options: CheckpointOptions, peers: Peers,
        reporter: Reporter,
    ) -> dict[str, str]:  # fmt: skip
        """Prepare the start of the query: check the topics that Spark reads, and take over tables of Goka's groups.

        Returns:
            Id of the topic of each Kafka source, by path.

        Raises:
            RunError: A topic cannot be read from where the checkpoint ended.
        """
        from wallaroo_runtime.spark.source.kafka import check_kafka  # late import: this imports pyspark

        folder = f"{checkpoint.directory}/{checkpoint.manifest.spark}"
        known, warn = checkpoint.topic_ids, reporter.warn if options.topic_reset else None
        check = partial(
            check_kafka, session, checkpoint.topology, known, folder, warn, repeats=checkpoint.repeated >= 0
        )
        ids = until_answered(check, reporter)
        begin_groups(session, plan, checkpoint, peers.journals, reporter)
        return ids

    def start(self, session: Any, plan: Plan, topology: Topology, options: "QueryOptions", peers: Peers) -> "Query":
        """Start the query.

        Raises:
            RunError: The worker does not start or must not be used.
        """
        from wallaroo_runtime.spark.query import start_query  # imported late: pyspark takes a second to import

        return start_query(session, plan, topology, options)

    def has_room(self, master: str) -> bool:
        """Return whether Spark has a free thread for reading states while the query runs."""
        return True  # a micro-batch releases its threads at its end
