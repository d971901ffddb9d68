"""Begins groups of Goka (a Go library) in a new checkpoint: without states, or with the tables that Goka wrote."""

import os
from collections.abc import Sequence
from typing import Any

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.manifest import PENDING
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.run.snapshot import STARTING, Reporter
from wallaroo_runtime.run.topics import cluster_of, tables_left, until_answered
from wallaroo_runtime.storage.place import JournalPlace

BATCH = 0  # the micro-batch with the first states; it has no input and no output
OFFSETS, CHECKSUM = f"offsets/{BATCH}", f"offsets/.{BATCH}.crc"


def check_left(checkpoint: Checkpoint) -> None:
    """Refuse `--continue-goka` if Kafka has no data of a Goka group. Call this before topics are created.

    Raises:
        RunError: R788 if no table of a group has records and no group has committed offsets; R672 or R728 if Kafka
            cannot be asked.
    """
    topology = checkpoint.topology
    if checkpoint.manifest.goka != PENDING or any(tables_left(topology)):
        return
    # Imported late: pyspark takes a second to import.
    from wallaroo_runtime.spark.goka.group import inputs_of, nothing_left

    inputs = ((group.name, source) for group in topology.pipelines for source in inputs_of(group))
    if not any(cluster_of(source).has_committed(group, source.topic) for group, source in inputs):
        raise nothing_left(topology.name)


def tell_left(checkpoint: Checkpoint, reporter: Reporter) -> None:
    """Warn of each table (R779) whose topic has records that a new checkpoint does not take over."""
    if not checkpoint.continues and checkpoint.manifest.goka != PENDING:
        for finding in until_answered(lambda: [*tables_left(checkpoint.topology)], reporter):
            reporter.warn(finding)


def begin_groups(
    session: Any,
    plan: Plan,
    checkpoint: Checkpoint,
    journals: Sequence[JournalPlace],
    reporter: Reporter,
) -> None:
    """Fill a new checkpoint with the tables and offsets of groups that ran with Goka (`--continue-goka`).

    If the run is killed meanwhile, the next run does this again, because nothing in Kafka has changed.

    Args:
        session: Spark session of the run.
        plan: Plan of the checkpoint's topology.
        checkpoint: The checkpoint; if it is new, Spark's own checkpoint in it is empty.
        journals: Sources of the query.
        reporter: Gets notes and findings.

    Raises:
        RunError: R788 as for `check_left`, or the error of a read from Kafka. The checkpoint is then unchanged.
    """
    # Imported late: pyspark takes a second to import.
    from wallaroo_runtime.spark.goka.group import continue_goka

    if checkpoint.manifest.goka != PENDING:
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
    os.sync()  # Spark does not sync its own files
    reach("goka.before_record")
    checkpoint.record_taken_over(BATCH)
    reach("goka.after_record")
    for note in begin.notes:
        reporter.note(note)
    for finding in begin.findings:
        reporter.warn(finding)
