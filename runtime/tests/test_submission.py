"""Drivers on a cluster: where it takes applications, and what becomes of one as spark-submit reports it."""

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.master import check_master
from wallaroo_runtime.spark.machine.yarn import resource_managers
from wallaroo_runtime.submit.submit import Submission

WAIT_S = 120.0


def configuration(folder: Path, **settings: str) -> dict[str, str]:
    """Write the configuration of a YARN cluster; return the variables that name it."""
    folder.mkdir()
    properties = "".join(
        f"<property><name>yarn.resourcemanager.{name.replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    (folder / "yarn-site.xml").write_text(f"<configuration>{properties}</configuration>")
    return {"HADOOP_CONF_DIR": str(folder.parent / "hdfs"), "YARN_CONF_DIR": str(folder)}


def test_resource_managers_of_a_configuration(tmp_path: Path) -> None:
    one = configuration(tmp_path / "one", hostname="one", address="${yarn.resourcemanager.hostname}:8050")
    assert resource_managers(one) == [("one", 8050)]
    assert resource_managers(configuration(tmp_path / "usual", hostname="two")) == [("two", 8032)]
    several = {"ha_enabled": "true", "ha_rm-ids": "a, b", "hostname_a": "first", "address_b": "second:1"}
    assert resource_managers(configuration(tmp_path / "several", **several)) == [("first", 8032), ("second", 1)]


def test_configurations_that_cannot_be_read(tmp_path: Path) -> None:
    broken = configuration(tmp_path / "broken")
    Path(broken["YARN_CONF_DIR"], "yarn-site.xml").write_text("<configuration>")
    for environment, reason in (
        ({"YARN_CONF_DIR": str(tmp_path)}, f"there is no yarn-site.xml in {tmp_path}"),
        (broken, f"{tmp_path}/broken/yarn-site.xml: no element found: line 1, column 15"),
    ):
        with pytest.raises(RunError) as caught:
            resource_managers(environment)
        assert caught.value.diagnostics[0].message == f"Spark master yarn cannot be reached; {reason}"


def test_addresses_that_only_hadoop_understands(tmp_path: Path) -> None:
    assert resource_managers(configuration(tmp_path / "none")) == []
    assert resource_managers(configuration(tmp_path / "variable", hostname="${env.MANAGER}")) == []
    assert resource_managers(configuration(tmp_path / "endless", hostname="${yarn.resourcemanager.hostname}")) == []


def test_a_resource_manager_must_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        second = f"127.0.0.1:{server.getsockname()[1]}"
        several = {"ha_enabled": "true", "ha_rm-ids": "a,b", "address_a": "127.0.0.1:1", "address_b": second}
        for name, value in configuration(tmp_path / "conf", **several).items():
            monkeypatch.setenv(name, value)
        check_master("yarn")
    with pytest.raises(RunError) as caught:
        check_master("yarn")
    reason = f"127.0.0.1:1: Connection refused; {second}: Connection refused"
    assert caught.value.diagnostics[0].message == f"Spark master yarn cannot be reached; {reason}"


# What YARN's client and Kubernetes' watcher write.
YARN_LINES = """26/01/01 10:00:00 INFO Client: Application ID is assigned: application_1_0001
26/01/01 10:00:01 INFO Client: Application report for application_1_0001 (state: ACCEPTED)
26/01/01 10:00:02 INFO Client: Application report for application_1_0001 (state: ACCEPTED)
\t diagnostics: AM container is launched, waiting for AM container to Register with RM
\t tracking URL: http://rm:8088/proxy/application_1_0001/
26/01/01 10:00:03 INFO Client: Application report for application_1_0001 (state: RUNNING)
"""
FAILED_LINES = """26/01/01 10:00:04 INFO Client: Application report for application_1_0001 (state: FINISHED)
\t diagnostics: User application exited with status 3
Exception in thread "main" org.apache.spark.SparkException: Application application_1_0001 finished with failed status
\tat org.apache.spark.deploy.yarn.Client.run(Client.scala:1404)
"""
KILLED_LINES = """26/01/01 10:00:04 INFO Client: Application report for application_1_0001 (state: FAILED)
\t diagnostics: Application application_1_0001 failed 2 times due to AM Container for appattempt_1_0001_000002 exited
Exception in thread "main" org.apache.spark.SparkException: Application application_1_0001 finished with failed status
"""
POD_LINES = """26/01/01 10:00:00 INFO LoggingPodStatusWatcherImpl: State changed, new state:
\t pod name: word-count-driver
26/01/01 10:00:01 INFO LoggingPodStatusWatcherImpl: Application status for spark-1 (phase: Running)
26/01/01 10:00:02 INFO LoggingPodStatusWatcherImpl: Application status for spark-1 (phase: Failed)
\t exit code: 4
"""
YARN_NOTES = [
    "application_1_0001 is submitted; `yarn logs -applicationId application_1_0001` shows what it says",
    "application_1_0001: accepted",
    "application_1_0001: running",
]


def submission(tmp_path: Path, said: str, end: str, master: str = "yarn") -> tuple[Submission, list[str]]:
    """Return the submission of a spark-submit that writes a text, and what it notes."""
    notes: list[str] = []
    text = f"import sys, time; sys.stderr.write({said!r}); sys.stderr.flush(); {end}"
    return Submission([sys.executable, "-c", text], master, notes.append), notes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("master", "said", "status", "code", "reason"),
    [
        ("yarn", YARN_LINES + FAILED_LINES, 1, 3, "the driver exited with status 3"),
        ("yarn", YARN_LINES + KILLED_LINES, 1, 1, "Application application_1_0001 failed 2 times due to AM Container"),
        ("k8s://https://h:6443", POD_LINES, 0, 4, "the driver exited with status 4"),
        ("yarn", 'Exception in thread "main" java.io.IOException: no', 1, 1, "java.io.IOException: no"),
        ("yarn", "", 127, 127, "spark-submit exited with status 127"),
    ],
)
def test_an_application_on_the_cluster_that_fails(
    master: str, said: str, status: int, code: int, reason: str, tmp_path: Path
) -> None:
    made, notes = submission(tmp_path, said, f"sys.exit({status})", master)
    with pytest.raises(RunError) as caught:
        made.run()
    assert caught.value.exit_code == code
    (finding,) = caught.value.diagnostics
    what = notes[0].split()[0] if notes else "the application"
    assert finding.code == "R685"
    assert finding.message.startswith(f"{what} on {master} failed; {reason}")
    if said == POD_LINES:
        assert notes[0] == "word-count-driver is submitted; `kubectl logs word-count-driver` shows what it says"
        assert notes[1:] == ["word-count-driver: running", "word-count-driver: failed"]
    elif notes:
        assert notes[:3] == YARN_NOTES
        page = "http://rm:8088/proxy/application_1_0001/"
        remedy = "`yarn logs -applicationId application_1_0001` shows what driver and executors said"
        assert finding.fix == f"{remedy}, and {page} each attempt"
    else:
        assert finding.fix == "look at what spark-submit said"
    assert "\tat " not in str(finding)


@pytest.mark.slow
def test_an_application_on_the_cluster_that_ends_well(tmp_path: Path) -> None:
    last = "INFO Client: Application report for application_1_0001 (state: FINISHED)\n"
    made, notes = submission(tmp_path, YARN_LINES + last, "sys.exit(0)")
    assert made.run() == 0
    assert notes == [*YARN_NOTES, "application_1_0001: finished"]


@pytest.mark.slow
def test_an_application_on_the_cluster_outlives_its_submission(tmp_path: Path) -> None:
    made, notes = submission(tmp_path, YARN_LINES, "time.sleep(60)")

    def stop() -> None:
        deadline = time.monotonic() + WAIT_S
        while len(notes) < len(YARN_NOTES) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    assert made.run() == 128 + signal.SIGTERM
    thread.join()
    kill = "`yarn application -kill application_1_0001`"
    assert notes == [*YARN_NOTES, f"application_1_0001 goes on; {kill} ends it"]
