"""The beginning of a new checkpoint's groups: empty, or with the tables of Goka's own processors in Kafka."""

import os
from collections.abc import Sequence
from typing import Any

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.manifest import PENDING
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.run.realtime_kafka import has_committed, tables_left
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.storage.place import JournalPlace

STARTING = "starting"
BATCH = 0  # the micro-batch that has the first states; it has no input and no output
OFFSETS, CHECKSUM = f"offsets/{BATCH}", f"offsets/.{BATCH}.crc"


def check_left(checkpoint: Checkpoint) -> None:
    """Refuse to take over a group that Kafka does not have, before any topic is created for it.

    Raises:
        RunError: R788, no table of a group has records and no group has committed offsets; R672 or R728.
    """
    topology = checkpoint.topology
    if checkpoint.manifest.goka != PENDING or any(tables_left(topology)):
        return
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.goka.group import inputs_of, nothing_left

    inputs = ((group.name, source) for group in topology.pipelines for source in inputs_of(group))
    if not any(has_committed(source, group) for group, source in inputs):
        raise nothing_left(topology.name)


def begin_groups(
    session: Any,
    plan: Plan,
    checkpoint: Checkpoint,
    journals: Sequence[JournalPlace],
    reporter: Reporter,
    *,
    tells_left: bool,
) -> None:
    """Take over the tables of Goka's processors, if the checkpoint is to begin with them; else report them.

    A run that is killed on the way leaves a checkpoint whose next run does it again: nothing in Kafka has changed.

    Args:
        session: Of Spark; that of the run.
        plan: Of the checkpoint's topology.
        checkpoint: Spark's own in it is empty, if it is new.
        journals: Sources of the query.
        reporter: Gets notes and findings.
        tells_left: Whether records in tables' topics are reported, which a new checkpoint does not take over.

    Raises:
        RunError: R788 and whatever reading Kafka raises; the checkpoint is as before.
    """
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.goka.group import continue_goka

    if checkpoint.manifest.goka != PENDING:
        for finding in tables_left(checkpoint.topology) if tells_left and not checkpoint.continues else []:
            reporter.warn(finding)
        return
    reporter.doing(STARTING, "reading the tables of Goka's groups")
    spark = checkpoint.manifest.spark
    begin = continue_goka(
        session, plan, checkpoint.topology, journals, f"{checkpoint.directory}/{spark}", checkpoint.manifest.id
    )
    reach("goka.after_tables")
    head = (checkpoint.directory.read(f"{spark}/{OFFSETS}") or b"").decode().split("\n")[:2]
    checkpoint.directory.remove(f"{spark}/{CHECKSUM}")
    checkpoint.directory.write(f"{spark}/{OFFSETS}", "\n".join([*head, *begin.lines]).encode())
    os.sync()  # Spark leaves it to the system when its files are safe
    reach("goka.before_record")
    checkpoint.taken_over(BATCH)
    reach("goka.after_record")
    for note in begin.notes:
        reporter.note(note)
    for finding in begin.findings:
        reporter.warn(finding)
