"""The jars of Spark's Kafka connector, and brokers that are not there."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.options import AppOptions, RunOptions, SparkOptions
from wallaroo_runtime.run.spark_session import spark_settings
from wallaroo_runtime.run.topics import check_sinks
from wallaroo_runtime.spark.machine.master import SUBMITTED
from wallaroo_runtime.spark.source.kafka import check_kafka
from wallaroo_runtime.spark.source.kafka_connector import connector_jars, coordinates, jar_settings, uses_kafka
from wallaroo_runtime.topology.model import KafkaSink, Pipeline, SparkSink, Topology

MAVEN = "#!/bin/sh\n{}\n"


def maven(directory: Path, script: str) -> None:
    """Put a program in the place of Maven."""
    path = directory / "mvn"
    path.write_text(MAVEN.format(script))
    path.chmod(0o700)


def failure(given: str, cache: Path) -> str:
    with pytest.raises(RunError) as caught:
        connector_jars(given, cache)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_coordinates_follow_spark() -> None:
    assert coordinates("4.3.0")[0] == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
    assert coordinates("4.2.0")[:2] == [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
    ]


def test_jars_that_are_given_are_taken() -> None:
    given = "/jars/spark-sql-kafka-0-10_2.13-4.2.0.jar,hdfs://name/clients.jar,file:///jars/pool.jar"
    listed = connector_jars(given)
    assert ",".join(listed) == given
    assert jar_settings(listed) == {
        "spark.jars": given,
        "spark.driver.extraClassPath": f"/jars/spark-sql-kafka-0-10_2.13-4.2.0.jar{os.pathsep}/jars/pool.jar",
    }


def test_a_run_has_the_jars_that_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    head: dict[str, Any] = {"path": "0/sinks/0", "name": "out", "kind": "spark", "inputs": (), "worker": "main"}
    sink = SparkSink(**head, format="kafka", options={}, value="key, value")
    conf = {"spark.jars": "/jars/spark-sql-kafka.jar,/jars/other.jar"}
    options = RunOptions(AppOptions("app.py"), spark=SparkOptions(conf=conf))

    def given(*sinks: SparkSink) -> dict[str, str]:
        found = spark_settings(options, Topology("app", (), (Pipeline("p", (), (), sinks),), {}))
        return {name: value for name, value in found.items() if "jars" in value}

    path = f"/jars/spark-sql-kafka.jar{os.pathsep}/jars/other.jar"
    assert given(sink) == {**conf, "spark.driver.extraClassPath": path}
    assert given() == conf
    monkeypatch.setenv(SUBMITTED, "1")
    assert given(sink) == {}, "spark-submit has shipped them"


def test_without_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert failure("", tmp_path / "cache").startswith("R675 Spark's Kafka connector org.apache.spark:")
    assert failure("", tmp_path / "cache").endswith(
        "; there is no `mvn` on PATH\n  fix: install Maven and run this once where its repository is reached, or "
        "give the jars with --conf spark.jars=PATH,PATH"
    )


@pytest.mark.slow
def test_what_maven_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    maven(tmp_path, 'echo "[ERROR] Could not find artifact"; exit 1')
    assert "; Could not find artifact\n" in failure("", tmp_path / "cache")
    maven(tmp_path, "exit 0")
    assert "; Maven failed\n" in failure("", tmp_path / "cache")


@pytest.mark.slow
def test_each_jar_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    script = """
for argument; do case $argument in
-Dartifact=*) name=$(echo "$argument" | sed 's/.*:\\(.*\\):\\(.*\\)/\\1-\\2.jar/');;
-DoutputDirectory=*) directory=${argument#*=};;
esac; done
echo "$name" >> FETCHED
echo jar > "$directory/$name"
"""
    maven(tmp_path, script.replace("FETCHED", str(tmp_path / "fetched")))
    jars = connector_jars("", tmp_path / "cache")
    assert connector_jars("/other.jar", tmp_path / "cache") == [*jars, "/other.jar"]
    assert (tmp_path / "fetched").read_text().split() == [Path(jar).name for jar in jars]
    assert len(jars) == 4
    assert all(Path(jar).read_text() == "jar\n" for jar in jars)


def test_a_broker_that_is_not_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        head: dict[str, Any] = {"path": "0/sinks/0", "name": "out", "kind": "kafka", "inputs": (), "worker": "main"}
        sink = KafkaSink(**head, topic="t", brokers=(address, "nowhere"), options={})
        topology = Topology("app", (), (Pipeline("p", (), (), (sink,)),), {})
        assert not uses_kafka(topology), "the egress writes"
        with pytest.raises(RunError) as caught:
            check_sinks(topology)
        options = {"kafka.bootstrap.servers": f"{address},nowhere", "topic": "t"}
        rows = SparkSink(**head, format="kafka", options=options, value="value")
        with pytest.raises(RunError) as caught_by_spark:
            check_kafka(None, Topology("app", (), (Pipeline("p", (), (), (rows,)),), {}))  # type: ignore[arg-type]
    text = str(caught.value)
    assert text == str(caught_by_spark.value)
    assert text.startswith(f'R672 sink "out": no answer from Kafka at {address},nowhere; {address}: ')
    assert "refused; nowhere: " in text
    assert "\n  fix: start the brokers, e.g. `wallaroo broker`, or correct their address: in the program, " in text
