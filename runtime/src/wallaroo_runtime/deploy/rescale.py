"""Gives a checkpoint other numbers of shuffle partitions and buckets, while no driver runs.

All is made beside what is there; that the application's record is replaced decides, so a process that is killed leaves
either the checkpoint as it was or the new one.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.fault import reach
from wallaroo_runtime.daemon import replace_file
from wallaroo_runtime.deploy.manifest import read_manifest
from wallaroo_runtime.deploy.place import MANIFEST, SPARK, Place
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.plan import Plan, compile_topology
from wallaroo_runtime.plan.port import Ports
from wallaroo_runtime.spark.java import check_java
from wallaroo_runtime.topology.load import load_document

WORK = "rescale"


@dataclass(frozen=True, slots=True)
class Rescaled:
    """What was done.

    Attributes:
        partitions: Shuffle partitions before and now.
        buckets: Buckets of each partition before and now.
        keys: Keys with state that were moved; 0 when nothing had to be.
        state_bytes: Bytes of their states.
    """

    partitions: tuple[int, int]
    buckets: tuple[int, int]
    keys: int
    state_bytes: int


def rescale(path: Path, partitions: int | None, buckets: int | None) -> Rescaled:
    """Give a checkpoint other numbers of partitions and buckets.

    Args:
        path: The checkpoint directory.
        partitions: Shuffle partitions; None: as many as it has.
        buckets: Buckets of each partition; None: as many as it has.

    Raises:
        RunError: R610, a driver runs; R662, a micro-batch is pending; R663, it cannot be rescaled; R664, it did not
            work. The checkpoint is as before.
    """
    manifest = read_manifest(path)
    check_java()
    place = Place.take(path)
    try:
        return _rescale(path, manifest, partitions, buckets)
    finally:
        place.release()


def _rescale(path: Path, manifest: Mapping[str, Any], partitions: int | None, buckets: int | None) -> Rescaled:
    now: dict[str, Any] = {**manifest}
    now["shuffle_partitions"] = partitions or manifest["shuffle_partitions"]
    now["buckets_per_partition"] = buckets or manifest["buckets_per_partition"]
    before, after = _plan(manifest), _plan(now)
    spark = manifest.get("spark", SPARK)
    _remove_rest(path, spark)
    keys = size = 0
    if before.bucket_ids != after.bucket_ids:
        if _has_state(path / spark, before, path):
            now["spark"] = _next_name(spark)
            keys, size = _move(path, spark, now["spark"], before, after)
        reach("rescale.before_switch")
        text = json.dumps(now, ensure_ascii=False, indent=2) + "\n"
        replace_file(path / MANIFEST, text.encode("utf-8"), durable=True)
        reach("rescale.after_switch")
        _remove_rest(path, now.get("spark", SPARK))
    return Rescaled(
        (manifest["shuffle_partitions"], now["shuffle_partitions"]),
        (manifest["buckets_per_partition"], now["buckets_per_partition"]),
        keys,
        size,
    )


def _plan(manifest: Mapping[str, Any]) -> Plan:
    topology = load_document(manifest["topology"])
    return compile_topology(
        topology,
        shuffle_partitions=manifest["shuffle_partitions"],
        buckets_per_partition=manifest["buckets_per_partition"],
        ports=Ports.from_json(manifest, topology),
    )


def _has_state(spark: Path, plan: Plan, path: Path) -> bool:
    """Say whether Spark has state that must be moved; checks that it can be."""
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.rescale import pending_batch, state_variables

    batch = pending_batch(spark)
    if batch is not None:
        raise RunError.of("R662", path=path, batch=batch)
    operators = state_variables(spark)
    found = {name for variables in operators for name in variables if name.startswith("log_")}
    planned = {f"log_{stage.id}" for level in plan.levels[1:] for stage in level if stage.has_state}
    if operators and (len(operators) != len(plan.levels) - 1 or found - planned):
        reason = "its last run has changed the application and has not processed anything since"
        raise RunError.of(
            "R663", USAGE, path=path, reason=reason, fix="run it until a message is processed, then again"
        )
    return bool(operators)


def _move(path: Path, old: str, new: str, before: Plan, after: Plan) -> tuple[int, int]:
    from wallaroo_runtime.spark.rescale import rescale as rescale_state
    from wallaroo_runtime.spark.session import create_session, stop_session

    session = create_session(
        after.application, master="local[*]", shuffle_partitions=after.shuffle_partitions, directory=path / "logs"
    )
    try:
        moved = rescale_state(session, path / old, path / new, path / WORK, before, after)
    except RunError:
        _remove_rest(path, old)
        raise
    finally:
        stop_session(session)
    os.sync()  # Spark leaves it to the system when its files are safe
    return moved.keys, moved.size


def _next_name(spark: str) -> str:
    """Return the name of Spark's next checkpoint.

    Example:
        >>> _next_name("spark"), _next_name("spark-2")
        ('spark-2', 'spark-3')
    """
    name, _, number = spark.partition("-")
    return f"{name}-{int(number or 1) + 1}"


def _remove_rest(path: Path, spark: str) -> None:
    """Remove what a rescale has left: its working files, and every checkpoint of Spark's but the one in use."""
    for entry in (path / WORK, path / SPARK, *path.glob(f"{SPARK}-*")):
        if entry.name != spark and entry.is_dir():
            shutil.rmtree(entry)
