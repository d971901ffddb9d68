"""The micro-batch mode of a run: Spark reads journals and topics, and commits each micro-batch."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.plan.bucket import BUCKETS_PER_PARTITION
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.run.goka import begin_groups
from wallaroo_runtime.run.options import CheckpointOptions, RunOptions, SparkOptions
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.run.topics import check_topics
from wallaroo_runtime.topology.model import KafkaSource, SparkSource, Topology

if TYPE_CHECKING:
    from wallaroo_runtime.spark.options import QueryOptions
    from wallaroo_runtime.spark.running import Query


class MicroBatchMode:
    """The mode of Spark's micro-batches."""

    reads_kafka = True
    quiet_look_s = 0.1  # frequent checks measure latencies exactly, also for the first message after a pause

    def check(self, options: RunOptions, topology: Topology) -> None:
        """Refuse nothing, because this mode runs all applications."""

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the bounds unchanged, because this mode needs no others."""
        return bounds

    def layout(self, spark: SparkOptions) -> tuple[int, int]:
        """Return the number of partitions, from the user or by the master, and the number of buckets in each."""
        return spark.partitions, BUCKETS_PER_PARTITION

    def settings(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that the user has chosen, because this mode needs no others."""
        return dict(chosen)

    def starts(self, topology: Topology, checkpoint: Checkpoint, options: RunOptions) -> None:
        """Return None, because Spark reads the topics."""

    def is_counted(self, topology: Topology) -> bool:
        """Return whether Spark reads only journals, so that all messages come through gateways."""
        return not any(isinstance(each, KafkaSource | SparkSource) for each in topology.sources())

    def begin(
        self, session: Any, plan: Plan, checkpoint: Checkpoint, options: CheckpointOptions, peers: Peers,
        reporter: Reporter,
    ) -> dict[str, str]:  # fmt: skip
        """Check the topics, and begin the groups of a new checkpoint."""
        ids = check_topics(session, checkpoint.topology, checkpoint, options.topic_reset, reporter.warn)
        begin_groups(session, plan, checkpoint, peers.journals, reporter, tells_left=not options.fresh)
        return ids

    def start(self, session: Any, plan: Plan, topology: Topology, options: "QueryOptions", peers: Peers) -> "Query":
        """Start the query. Gateways will get the counts of the query's visits."""
        from wallaroo_runtime.spark.query import start_query  # imported late: pyspark takes a second to import

        return start_query(session, plan, topology, options, peers.tell_visits)

    def has_room(self, master: str) -> bool:
        """Return True, because a micro-batch releases its threads at its end."""
        return True
