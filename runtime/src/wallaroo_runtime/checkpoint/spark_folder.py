"""Spark's own checkpoints in that of an application: their names, the plan of the one in use, and what is left over."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.directory import SPARK
from wallaroo_runtime.plan import Plan, compile_topology
from wallaroo_runtime.plan.port import Ports
from wallaroo_runtime.topology.load import load_document

WORK = "rescale"


def plan_of(manifest: Mapping[str, Any]) -> Plan:
    """Return the plan that a checkpoint was written with."""
    topology = load_document(manifest["topology"])
    return compile_topology(
        topology,
        shuffle_partitions=manifest["shuffle_partitions"],
        buckets_per_partition=manifest["buckets_per_partition"],
        ports=Ports.from_json(manifest),
    )


def next_name(spark: str) -> str:
    """Return the name of Spark's next checkpoint.

    Example:
        >>> next_name("spark"), next_name("spark-2")
        ('spark-2', 'spark-3')
    """
    name, _, number = spark.partition("-")
    return f"{name}-{int(number or 1) + 1}"


def remove_rest(path: Path, spark: str) -> None:
    """Remove what a rescale has left: its working files, and every checkpoint of Spark's but the one in use."""
    for entry in path.iterdir():
        if (entry.name == WORK or is_outdated(entry.name, spark)) and entry.is_dir():
            shutil.rmtree(entry)


def is_outdated(name: str, used: str) -> bool:
    """Say whether a name is that of a checkpoint of Spark's, and not of the one in use."""
    return name != used and (name == SPARK or name.startswith(f"{SPARK}-"))
