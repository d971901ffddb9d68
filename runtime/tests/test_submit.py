"""Submissions: the commands, what is refused before anything starts, and drivers that are run again."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pyspark import SparkConf

from wallaroo.emit.module import module_command
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.spark.machine import master as machine_master
from wallaroo_runtime.spark.machine.jar import operator_jar
from wallaroo_runtime.spark.machine.master import check_master
from wallaroo_runtime.spark.session import open_cluster
from wallaroo_runtime.submit import submit
from wallaroo_runtime.submit.submit import DriverKeeper
from wallaroo_runtime.system.backoff import Backoff

CASE = Path(__file__).parents[2] / "tests" / "cases" / "reverse"
MASTER = "spark://127.0.0.1:1"  # nobody listens there
WAIT_S = 120.0
KAFKA_ARGUMENTS = tuple(
    f"--kafka_{side}_{name}={value}"
    for side in ("source", "sink")
    for name, value in (("topic", side), ("brokers", "127.0.0.1:9092"))
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("packed") / "app.tar.gz"
    pack(PackOptions(str(CASE / "app.py"), file, ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")))
    return str(file)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["submit", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_client_mode_is_a_driver_on_this_machine(
    packed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(packed).parent)
    options = [
        "--master",
        MASTER,
        "--conf",
        "spark.a=b c",
        "--in",
        "127.0.0.1:7010",
        "--restart",
        "on-failure",
        "--fresh",
    ]
    code, out, err = said(capsys, "app.tar.gz", *options, "--dry-run")
    assert (code, err) == (0, "")
    expected = module_command(sys.executable, "wallaroo_runtime.cli.start", "run", packed)
    assert shlex.split(out) == [
        *expected,
        "--master",
        MASTER,
        "--conf",
        "spark.a=b c",
        "--in",
        "127.0.0.1:7010",
        "--fresh",
    ]
    # What was printed is a command that runs: it finds that there is no such master.
    done = subprocess.run(["bash", "-c", out], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"R659 Spark master {MASTER} cannot be reached; 127.0.0.1:1: Connection refused")


@pytest.mark.slow
def test_cluster_mode_is_a_command_of_spark_submit(
    packed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    options = ["--master=k8s://https://h:6443", "--deploy-mode", "cluster", "--checkpoint", "/c", "--out", "h:1"]
    options += ["--gateway", "g:1"]
    token = "spark.wallaroo.service.tokenFile="
    conf = ["--conf", "spark.driver.memory=4g", "--conf", "spark.kubernetes.container.image=me/app"]
    conf += ["--conf", f"{token}/secret/token"]
    code, out, err = said(capsys, packed, *options, *conf, "--dry-run")
    assert (code, err) == (0, "")
    assert shlex.split(out) == [
        "/opt/spark/bin/spark-submit", "--master", "k8s://https://h:6443", "--deploy-mode", "cluster",
        "--conf", "spark.driver.memory=4g",
        "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "--conf", "spark.authenticate=true", "--conf", "spark.network.crypto.enabled=true",
        "--conf", "spark.network.crypto.saslFallback=false", "--conf", "spark.network.crypto.cipher=AES/GCM/NoPadding",
        "--conf", "spark.kubernetes.container.image=me/app", "--conf", f"{token}token",
        "--conf", f"spark.jars={operator_jar()}",
        "--files", f"{packed},/secret/token",
        str(Path(submit.__file__).parents[1] / "cli" / "start.py"),
        "run", "app.tar.gz", "--master", "k8s://https://h:6443", "--checkpoint", "/c", "--out", "h:1",
        "--gateway", "g:1", *conf, "--conf", f"{token}token",
    ]  # fmt: skip


@pytest.mark.slow
def test_cluster_mode_of_yarn_says_where_python_is(
    packed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    options = (packed, "--master", "yarn", "--deploy-mode", "cluster", "--checkpoint", "/c", "--dry-run")
    written = "spark.yarn.appMasterEnv.XDG_STATE_HOME={{PWD}}"
    _, out, _ = said(capsys, *options)
    assert {f"spark.pyspark.python={sys.executable}", written} < set(shlex.split(out))
    _, out, _ = said(capsys, *options, "--conf", "spark.pyspark.python=./environment/bin/python")
    assert {"spark.pyspark.python=./environment/bin/python", written} < set(shlex.split(out))
    assert f"spark.pyspark.python={sys.executable}" not in shlex.split(out)
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")  # spark-submit takes it along
    _, out, _ = said(capsys, *options)
    assert "spark.pyspark.python" not in out


@pytest.mark.slow
def test_cluster_mode_takes_the_connector_of_kafka_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, jar = tmp_path / "app.tar.gz", tmp_path / "spark-sql-kafka.jar"
    pack(PackOptions(str(CASE.parent / "celsius_kafka" / "app.py"), file, KAFKA_ARGUMENTS))
    options = (
        "--master",
        "k8s://https://h",
        "--deploy-mode",
        "cluster",
        "--checkpoint",
        "/c",
        "--conf",
        f"spark.jars={jar}",
    )
    code, out, _ = said(capsys, str(file), *options, "--dry-run")
    assert code == 0
    assert f"spark.jars={jar},{operator_jar()}" in shlex.split(out)


@pytest.mark.slow
@pytest.mark.parametrize("master", [MASTER, "local[2]"])
def test_cluster_mode_where_spark_has_none(master: str, packed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, packed, "--master", master, "--deploy-mode", "cluster")
    assert (code, out) == (2, "")
    first, fix = err.splitlines()
    assert first == f"R608 {master} runs no Python driver in cluster mode"
    assert fix == "  fix: use --deploy-mode client on a machine that stays, with --restart on-failure"


@pytest.mark.slow
def test_real_time_mode_is_submitted_to_this_machine_alone(packed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, command, _ = said(capsys, packed, "--master", "local[2]", "--mode", "realtime", "--dry-run")
    assert code == 0
    assert shlex.split(command)[-2:] == ["--mode", "realtime"]
    place = ("--deploy-mode", "cluster", "--checkpoint", "/c")
    for options in (("--master", MASTER), ("--master", "yarn", *place), ("--master", "k8s://https://h", *place)):
        code, command, error = said(capsys, packed, *options, "--mode", "realtime", "--dry-run")
        assert (code, command) == (2, "")
        assert error.startswith(f"R755 real-time mode cannot run this: the cluster {options[1]}; it needs a local ")


@pytest.mark.slow
def test_what_cannot_be_submitted(packed: str, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ("--master", "yarn", "--deploy-mode", "cluster")
    program = str(CASE / "app.py")
    for arguments, text in (
        ((program, "--master", MASTER), f"R608 {program} is a program; a cluster takes what is packed"),
        (
            (packed, "--master", MASTER, "--depth", "3"),
            "R608 --depth 3: a packed application has its arguments already",
        ),
        (
            (packed, "--master", MASTER, "--supervise"),
            "R608 --supervise is an option of spark-submit\n  fix: give --restart on-failure\n",
        ),
        (
            (packed, "--executor-memory=2g", "--master", MASTER),
            "R608 --executor-memory is an option of spark-submit\n  fix: give --conf spark.executor.memory=SIZE\n",
        ),
        ((packed, *cluster), "R608 in cluster mode the driver has no directory that stays"),
        (
            (packed, *cluster, "--checkpoint", "hdfs://n/c"),
            "R608 --checkpoint hdfs://n/c needs a remote",
        ),
        ((packed, *cluster, "--checkpoint", "/c", "--restart", "on-failure"), "R608 --restart is for client mode"),
        ((packed, "--master", MASTER, "--conf", "a=b"), "R608 --conf a=b is no setting of Spark"),
        ((packed, "--conf", "spark.sql.shuffle.partitions=x"), "R608 --conf spark.sql.shuffle.partitions=x is not a"),
    ):
        code, out, err = said(capsys, *arguments)
        assert (code, out) == (2, "")
        assert text in err


def test_masters_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    kinds = "give one of local, local[N], spark://HOST:PORT, yarn, k8s://https://HOST:PORT"
    directory = "let HADOOP_CONF_DIR or YARN_CONF_DIR name the directory of the cluster's configuration"
    fixes = {"yarn": directory, "spark://:7077": kinds, "mesos://h:1": kinds}
    for master, reason in (
        ("yarn", "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1: Connection refused; 127.0.0.1:2: Connection refused"),
        ("k8s://http://127.0.0.1:1", "127.0.0.1:1: Connection refused"),
        ("k8s://https://127.0.0.1:1", "127.0.0.1:1: Connection refused"),
        ("spark://:7077", "it names no host"),
        ("mesos://h:1", "it is no address of one"),
    ):
        with pytest.raises(RunError) as caught:
            check_master(master)
        first, fix = str(caught.value.diagnostics[0]).splitlines()
        assert first == f"R659 Spark master {master} cannot be reached; {reason}"
        assert (
            fix
            == f"  fix: {fixes.get(master, 'check the address; start the master, or open the port for this machine')}"
        )
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # a driver that spark-submit has started
    check_master(MASTER)


@pytest.mark.slow
@pytest.mark.parametrize("master", [[], ["--master", "local[2]"], ["--master=local[2]"]])
def test_without_a_master_it_is_said_where_it_runs(
    master: list[str], packed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, packed, *master, "--dry-run")
    assert (code, err) == (0, "" if master else "note: without --master it runs on this machine, as with `run`\n")
    assert said(capsys, packed, *master, "--dry-run", "--json")[2] == ""


def driver(tmp_path: Path, text: str) -> list[str]:
    """Return the command of a driver that counts its starts in `n`."""
    begin = f"""
        import os, pathlib, signal, sys, time
        file = pathlib.Path({str(tmp_path / "count")!r})
        n = int(file.read_text()) + 1 if file.exists() else 1
        whole = file.with_suffix(".new")  # a signal may come between its lines
        whole.write_text(str(n))
        whole.rename(file)
        ready = lambda: os.write(int(os.environ["WALLAROO_DRIVER_READY"]), b"1")
    """
    return [sys.executable, "-c", textwrap.dedent(begin) + textwrap.dedent(text)]


def starts(tmp_path: Path) -> int:
    return int((tmp_path / "count").read_text())


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit, "BACKOFF", Backoff(0.01, 0.01))


@pytest.mark.slow
def test_driver_that_fails_is_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
        ready()
        if n == 1: os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(1 if n < 4 else 0)
    """
    assert DriverKeeper(driver(tmp_path, text), restarts=True).run() == 0
    assert starts(tmp_path) == 4
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == "the driver ended; it was ended by SIGKILL; it is started again in 0.01 s"
    assert rest == ["the driver ended; it exited with status 1; it is started again in 0.01 s"] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "restarts", "code"),
    [
        ("sys.exit(1)", True, 1),  # was never ready
        ("ready(); sys.exit(2)", True, 2),
        ("ready(); sys.exit(3)", True, 3),
        ("ready(); sys.exit(1)", False, 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", False, 137),
    ],
)
def test_driver_that_is_not_run_again(text: str, restarts: bool, code: int, tmp_path: Path) -> None:
    assert DriverKeeper(driver(tmp_path, text), restarts=restarts).run() == code
    assert starts(tmp_path) == 1


@pytest.mark.slow
def test_a_driver_reports_that_it_is_ready_and_its_children_know_nothing_of_it(tmp_path: Path) -> None:
    text = """
        from wallaroo_runtime.system.process import READY, report_ready
        report_ready()
        sys.exit(0 if n > 1 and READY not in os.environ else 1)
    """
    assert DriverKeeper(driver(tmp_path, text), restarts=True).run() == 0
    assert starts(tmp_path) == 2


@pytest.mark.slow
def test_driver_that_fails_too_often(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        DriverKeeper(driver(tmp_path, "ready(); sys.exit(1)"), restarts=True).run()
    text = str(caught.value.diagnostics[0])
    assert text.startswith("R661 the driver ended 11 times within 600 s; it exited with status 1\n")
    assert starts(tmp_path) == submit.LIMIT + 1


@pytest.mark.slow
def test_signal_ends_driver_and_keeper(tmp_path: Path) -> None:
    text = """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        ready()
        signal.pause()
    """
    file = tmp_path / "count"

    def stop() -> None:
        deadline = time.monotonic() + WAIT_S
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    code = DriverKeeper(driver(tmp_path, text), restarts=True).run()
    thread.join()
    assert code in (1, 128 + signal.SIGTERM)  # it may not have had its handler yet
    assert starts(tmp_path) == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_between_two_drivers(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Signalling(Backoff):
        def after(self, failures: int) -> float:
            os.kill(os.getpid(), number)
            return WAIT_S

    monkeypatch.setattr(submit, "BACKOFF", Signalling(1.0, 1.0))
    text = "ready(); sys.exit(1)"
    assert DriverKeeper(driver(tmp_path, text), restarts=True).run() == 128 + number
    assert starts(tmp_path) == 1


def test_a_cluster_that_asks_for_no_secret_is_told() -> None:
    settings = SparkConf(loadDefaults=False).setMaster("yarn")
    (finding,) = open_cluster(settings)
    assert str(finding).splitlines()[0] == (
        "R713 Spark, which asks for no secret, listens at yarn, where other machines may reach it; "
        "any of them can run code there"
    )
    assert [*open_cluster(settings.set("spark.authenticate", "true"))] == []


def test_a_master_that_takes_programs_over_http_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Handler(BaseHTTPRequestHandler):
        body = b'{"action": "SubmissionStatusResponse", "success": false}'

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.body)

        def log_message(self, *_: object) -> None: ...

    settings = SparkConf(loadDefaults=False).setMaster("spark://127.0.0.1:1").set("spark.authenticate", "true")
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        monkeypatch.setattr(machine_master, "REST_PORT", server.server_port)
        threading.Thread(target=server.serve_forever).start()
        try:
            (finding,) = open_cluster(settings)
            monkeypatch.setattr(Handler, "body", b"of another program")
            assert [*open_cluster(settings)] == []
        finally:
            server.shutdown()
    assert str(finding) == (
        f"R713 Spark's REST server, which asks for no secret, listens at 127.0.0.1:{server.server_port}, where other "
        "machines may reach it; any of them can run code there as Spark's user\n"
        "  fix: restrict access to the address, e.g. by a firewall, or set spark.master.rest.enabled to false for the "
        "master, and "
        "start it again (docs/operators.md)"
    )
    with socket.socket() as held:  # so that no other test listens there
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(server.server_address)
        assert [*open_cluster(settings)] == [], "nobody listens now"
