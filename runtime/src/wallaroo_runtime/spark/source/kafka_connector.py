"""Fetches the jars of Spark's Kafka connector when they are needed: PySpark does not include them."""

import json
import os
import tempfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.spark.machine.settings import JARS
from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.maven import run_maven
from wallaroo_runtime.topology.model import SparkSink, SparkSource, Topology

CONNECTOR = "spark-sql-kafka"


def uses_kafka(topology: Topology) -> bool:
    """Say whether an application has sources or sinks of Kafka that Spark reads or writes."""
    formats = (
        part.format for part in (*topology.sources(), *topology.sinks()) if isinstance(part, SparkSource | SparkSink)
    )
    return "kafka" in formats or any(topology.kafka_sources())


def coordinates(spark: str) -> list[str]:
    """Return the Maven coordinates for a version of Spark, from connector.json.

    Example:
        >>> coordinates("4.9.1")[0]
        'org.apache.spark:spark-sql-kafka-0-10_2.13:4.9.1'
    """
    known: dict[str, list[str]] = json.loads(files(__package__).joinpath("connector.json").read_text(encoding="utf-8"))
    chosen = known.get(".".join(spark.split(".")[:2]), known[""])
    return [coordinate.format(spark=spark) for coordinate in chosen]


def connector_jars(user_jars: str = "", cache: Path | None = None) -> list[str]:
    """Return the jars that a session needs. Missing jars of the connector are fetched with Maven.

    Args:
        user_jars: The user's setting `spark.jars`. If it has the connector, nothing is fetched.
        cache: Directory of fetched jars; None takes the user's cache directory.

    Raises:
        RunError: R675 if Maven is missing or does not find a jar.
    """
    named = [name for name in user_jars.split(",") if name]
    if any(CONNECTOR in name for name in named):
        return named
    cache = cache or cache_directory() / "jars"
    cache.mkdir(parents=True, exist_ok=True)
    return [*(str(_fetched(coordinate, cache)) for coordinate in coordinates(version("pyspark"))), *named]


def _fetched(coordinate: str, cache: Path) -> Path:
    _, artifact, number = coordinate.split(":")
    target = cache / f"{artifact}-{number}.jar"
    if target.is_file():
        return target
    # Fetch to a temporary directory, then rename the file: another run may fetch the same jar.
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        options = (f"-Dartifact={coordinate}", f"-DoutputDirectory={directory}")
        reason, fetched = run_maven(Path(directory), "copy", *options), Path(directory, target.name)
        if reason or not fetched.is_file():
            raise RunError.of(
                "R675",
                USAGE,
                what=f"Spark's Kafka connector {coordinate}",
                reason=reason or "Maven failed",
                more=", or give the jars with --conf spark.jars=PATH,PATH",
            )
        fetched.replace(target)
    return target


def jar_settings(jars: list[str]) -> dict[str, str]:
    """Return the settings that give the jars to driver and executors."""
    files = [jar.removeprefix("file://") for jar in jars]
    local = [file for file in files if "://" not in file]
    return {JARS: ",".join(jars), "spark.driver.extraClassPath": os.pathsep.join(local)}
