"""Reports at the start of a run what earlier runs have left in its checkpoint."""

import shlex

from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.manifest import REALTIME
from wallaroo_runtime.checkpoint.uncommitted import repeated_batch
from wallaroo_runtime.errors import count
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.model import KafkaSource, SparkSource


def tell_past(reporter: Reporter, checkpoint: Checkpoint, messages: int | None, asked: int = 0) -> None:
    """Report to the user what earlier runs have left in a checkpoint, and which settings differ in this run.

    Args:
        asked: Number of shuffle partitions that the user asks for; 0 if the user asks for none.
        messages: Number of messages that sources have taken so far; None if it is unknown, because Spark reads sources.
    """
    if checkpoint.continues:
        past = (
            "its sources continue at their positions"
            if messages is None
            else f"earlier runs took {count(messages, 'message')}"
        )
        reporter.note(f"continuing from {checkpoint.directory}")
        reporter.note(f"{past}; --fresh starts over")
    kept = checkpoint.manifest.shuffle_partitions
    if asked not in (0, kept) and checkpoint.manifest.mode != REALTIME:
        quoted = shlex.quote(str(checkpoint.directory))
        remedy = f"`wallaroo state rescale {quoted} --partitions {asked}` changes it"
        reporter.note(f"the checkpoint keeps its {kept} shuffle partitions, not {asked}; {remedy}")
    for name in checkpoint.changed_code:
        reporter.note(f'the code of worker "{name}" is not that of the last run')
    for change in checkpoint.changes:
        reporter.note(f"changed since the last run: {change.text}")
    if again := checkpoint.accepted:
        reporter.note(f"--accept-changed: messages at positions {again.start} to {again.stop - 1} run again, R790")
    is_published = checkpoint.repeated in checkpoint.manifest.rerun_batches
    if checkpoint.is_ahead or is_published:
        reporter.warn(repeated_batch(checkpoint.repeated, is_published=is_published))


def records_of(checkpoint: Checkpoint) -> RecordCount:
    """Return the numbers of messages that Spark has read from sources and written to sinks since the checkpoint began.

    Call this before the query starts.

    In real-time mode Spark reads no sources and writes no sinks, but a rescale may have kept their numbers.
    """
    topology = checkpoint.topology
    has_sources = any(isinstance(each, KafkaSource | SparkSource) for each in topology.sources())
    return RecordCount.open(checkpoint.directory) if has_sources or any(topology.spark_sinks()) else RecordCount()
