"""Starts Spark for a run, with the settings of its options. A checkpoint at a URL needs Spark before it is opened."""

import os
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.url import is_remote
from wallaroo_runtime.durable.directory import Directory, LocalDirectory
from wallaroo_runtime.run.log_mark import mark_begin
from wallaroo_runtime.run.options import RunOptions
from wallaroo_runtime.run.realtime import chosen_mode
from wallaroo_runtime.run.signals import RunStop, kept_signals
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.run.start_over import start_over
from wallaroo_runtime.spark.machine.master import SUBMITTED, shuffle_partitions
from wallaroo_runtime.spark.machine.virtual_machine import VirtualMachine, launch
from wallaroo_runtime.topology.model import Topology


def open_directory(
    options: RunOptions, topology: Topology, held: HeldDirectory, reporter: Reporter, stopped: RunStop
) -> Directory:
    """Return the directory of the checkpoint. For a checkpoint at a URL, start Spark, which can read its files."""
    location = options.checkpoint.location
    if not location:
        return LocalDirectory(held.path)
    from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory

    mark_begin(logs := held.path / "logs")
    java = launch(options.spark.master, logs, spark_settings(options, topology), makes_archive=True)
    session = start_session(options, topology, shuffle_partitions(options.spark.master), logs, java)
    if java is not None:
        java.has_worked = True  # `_run` of `run.py` gets no `java`, so it does not set this
    directory = HadoopDirectory(session, location)
    if options.checkpoint.fresh:
        start_over(directory, topology.name, reporter, stopped.check)
    return directory


def spark_settings(options: RunOptions, topology: Topology) -> dict[str, str]:
    """Return the settings of Spark that depend on the run. If Spark must read Kafka, fetch Kafka's connector first."""
    from wallaroo_runtime.spark.machine.settings import JARS, REMOTE_FILES, memory_settings
    from wallaroo_runtime.spark.source.kafka_connector import connector_jars, jar_settings, uses_kafka

    spark = options.spark
    files = REMOTE_FILES if is_remote(options.checkpoint.location) else {}
    # spark-submit already has the jars for a driver that it starts.
    mode = chosen_mode(options)
    needs_jars = uses_kafka(topology) and SUBMITTED not in os.environ and mode.reads_kafka
    user_jars = spark.settings.get(JARS, "")
    jars = jar_settings(connector_jars(user_jars)) if needs_jars else {}
    if options.runs_code_here and jars.pop(JARS, "") and user_jars:  # this driver is the executor
        jars[JARS] = user_jars
    chosen = dict(spark.settings)
    if needs_jars or SUBMITTED in os.environ:
        chosen.pop(JARS, None)
    return memory_settings(spark.master, options.bounds.state_cache_bytes) | files | jars | mode.settings(chosen)


def start_session(
    options: RunOptions, topology: Topology, partitions: int, logs: Path, java: VirtualMachine | None = None
) -> Any:
    """Return Spark's session; start Spark if it does not run. The signal handlers stay as they are.

    Args:
        java: JVM that was launched for Spark; None if PySpark must launch one, or Spark runs already.
    """
    from wallaroo_runtime.spark.session import create_session

    with kept_signals():
        return create_session(
            topology.name,
            master=options.spark.master,
            shuffle_partitions=partitions,
            directory=logs,
            settings=java.settings if java else spark_settings(options, topology),
            java=java,
        )
