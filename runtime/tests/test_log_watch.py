"""What Spark writes only into its log while PySpark waits is said at once."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine import log_watch
from wallaroo_runtime.spark.machine.log_watch import refused_by_master, waiting_for_executors, watching_master

Watch = Callable[[str, Path, Callable[[str], None]], AbstractContextManager[None]]
MASTER, WAIT_S = "spark://h:7077", 60.0
# As Spark 4.3 writes them.
NO_SECRET = """\
WARN StandaloneAppClient$ClientEndpoint: Failed to connect to master h:7077
org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: java.lang.RuntimeException: java.lang.IllegalArgumentException: Unknown challenge message.
"""
OTHER_SECRET = """\
ERROR TransportClientFactory: Exception while bootstrapping client after 774 ms
java.lang.RuntimeException: java.lang.RuntimeException: java.lang.IllegalArgumentException: Authentication failed.
"""
SECRET_ALONE = """\
ERROR TransportClientFactory: Exception while bootstrapping client after 1257 ms
java.lang.RuntimeException: java.lang.RuntimeException: java.io.EOFException
"""
UNRESPONSIVE = "ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are unresponsive!\n"
SET = (
    "set SPARK_CONF_DIR to the directory of the cluster's spark-defaults.conf, which has spark.authenticate.secret "
    "(docs/operators.md)"
)


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_watch, "LOOK_S", 0.01)


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("text", "reason", "fix"),
    [
        (NO_SECRET, "it asks for a secret, and this driver has none", SET),
        (OTHER_SECRET, "this driver's secret is not the secret of the cluster", SET),
        (
            SECRET_ALONE,
            "this driver asks for a secret, and the master has none",
            "give the secret to the cluster, too, or set no spark.authenticate for the driver (docs/operators.md)",
        ),
        (UNRESPONSIVE, "it does not take this application", "look for the reason in {log}"),
    ],
)
def test_a_driver_that_the_master_refuses_is_ended(text: str, reason: str, fix: str, tmp_path: Path) -> None:
    log, ended = tmp_path / "spark.log", threading.Event()
    with pytest.raises(RunError) as caught, refused_by_master(MASTER, log, ended.set):
        append(log, "WARN Utils: of no interest\n")
        append(log, text)
        assert ended.wait(WAIT_S)
        raise ConnectionError  # of Py4J
    assert str(caught.value) == f"R659 Spark master {MASTER} cannot be reached; {reason}\n  fix: {fix.format(log=log)}"


def test_other_failures_of_a_start_stay_what_they_are(tmp_path: Path) -> None:
    log, ended = tmp_path / "spark.log", threading.Event()
    append(log, OTHER_SECRET)  # of an earlier run
    with pytest.raises(ConnectionError), refused_by_master(MASTER, log, ended.set):
        append(log, "WARN Utils: of no interest\n")
        raise ConnectionError
    with pytest.raises(ConnectionError), refused_by_master("local[2]", log, ended.set):
        append(log, OTHER_SECRET)
        raise ConnectionError
    assert not ended.is_set()


@pytest.mark.parametrize("master", ["local", "local[2]"])
@pytest.mark.parametrize("watch", [waiting_for_executors, watching_master])
def test_a_local_master_needs_no_look(master: str, watch: Watch, tmp_path: Path) -> None:
    with watch(master, tmp_path / "spark.log", lambda text: None):
        assert "spark-log" not in {thread.name for thread in threading.enumerate()}


def test_a_refusal_that_comes_in_two_parts_is_found(tmp_path: Path) -> None:
    log, ended = tmp_path / "spark.log", threading.Event()
    begin, end = SECRET_ALONE[:70], SECRET_ALONE[70:]
    with pytest.raises(RunError), refused_by_master(MASTER, log, ended.set):
        append(log, begin)
        assert not ended.wait(0.05)
        append(log, end)
        assert ended.wait(WAIT_S)
        raise ConnectionError


def test_a_refusal_in_a_new_file_of_the_log_is_found(tmp_path: Path) -> None:
    """Spark begins a new file when the log is long."""
    log, ended = tmp_path / "spark.log", threading.Event()
    append(log, "WARN Utils: of no interest\n" * 1000)
    with pytest.raises(RunError, match="R659"), refused_by_master(MASTER, log, ended.set):
        log.write_text(OTHER_SECRET)
        assert ended.wait(WAIT_S)
        raise ConnectionError


@pytest.mark.parametrize(
    ("watch", "line", "told_text"),
    [
        (
            waiting_for_executors,
            "WARN TaskSchedulerImpl: Initial job has not accepted any resources; check your cluster UI\n",
            "the cluster gives no executor to this application, which waits; start a worker of the cluster, or ask for "
            "less: --conf spark.executor.memory=512m, --conf spark.executor.cores=1",
        ),
        (
            watching_master,
            "WARN StandaloneSchedulerBackend: Disconnected from Spark cluster! Waiting for reconnection...\n",
            "the master of the cluster is away; executors go on, but none that ends is replaced; start the master, and "
            "if it does not recover applications (spark.deploy.recoveryMode), then stop this application and run it "
            "again",
        ),
    ],
)
def test_a_cluster_that_gives_no_executor_is_told_once(watch: Watch, line: str, told_text: str, tmp_path: Path) -> None:
    log, told, notes = tmp_path / "spark.log", threading.Event(), list[str]()

    def note(text: str) -> None:
        notes.append(text)
        told.set()

    with watch(MASTER, log, note):
        for _ in range(2):
            append(log, line)
            assert told.wait(WAIT_S)
    assert notes == [told_text]


def test_a_log_that_begins_anew_is_read_from_its_begin(tmp_path: Path) -> None:
    log, seen, told = tmp_path / "spark.log", list[str](), threading.Event()

    def look(text: str) -> bool:
        seen.append(text)
        told.set()
        return False

    append(log, "x" * 100)
    with log_watch.noticing(log, look):
        log.write_text("new file\n", encoding="utf-8")
        assert told.wait(WAIT_S)
    assert seen == ["new file\n"]
