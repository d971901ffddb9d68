"""A real YARN that runs drivers and loses some of their processes; the checkpoint is in a real HDFS."""

import json
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest

from support.case import Case
from support.hadoop import LOOPBACK, Hadoop
from support.host import descendants
from support.remote import LONG_S, PARTS, Site, counted, ended, payload, running
from support.run import STOP_S, WAIT_S, Receiver, Run, finish, wait_until, wallaroo
from support.spark_job import Job
from support.standalone import cmdline

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
MASTER = b"org.apache.spark.deploy.yarn.ApplicationMaster"
JARS = Path(pyspark.__file__).parent / "jars"
CONF = {
    "spark.yarn.jars": f"local:{JARS}/*",
    "spark.yarn.maxAppAttempts": "2",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": LOOPBACK,
    "spark.yarn.scheduler.heartbeat.interval-ms": "500",
    "spark.executorEnv.SPARK_LOCAL_IP": LOOPBACK,
    "spark.driver.memory": "1g",
    "spark.executor.memory": "640m",
    "spark.executor.instances": "1",
    "spark.sql.shuffle.partitions": "4",
}


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    with Hadoop(tmp_path_factory.mktemp("hadoop")) as hadoop:
        yield hadoop


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running(Site(tmp_path, "")) as made:
        yield made


@pytest.fixture
def packed(archives: Callable[..., Path]) -> Callable[[str], Path]:
    """Return what packs the word count, once for each language."""
    return lambda language: archives(f"word_count-{language}", Case("word_count").app(language))


def options(site: Site, *more: object) -> tuple[object, ...]:
    """Return the options of a submission to YARN that uses the services."""
    return (*on_yarn(), *site.options(), *more)


def on_yarn() -> tuple[str, ...]:
    """Return the options of a submission to YARN."""
    return ("--master", "yarn", *(item for pair in CONF.items() for item in ("--conf", "=".join(pair))))


class Exchange:
    """Messages to the gateway of a driver that runs somewhere else, and what comes of them.

    Args:
        site: Has the gateway.
        receiver: Of the sink.
        check: Fails when there is nothing left to wait for.
    """

    def __init__(self, site: Site, receiver: Receiver, check: Callable[[], None]) -> None:
        self._site, self._receiver, self._check = site, receiver, check
        self._sent: list[str] = []

    def send(self, part: list[str]) -> None:
        """Send messages once the gateway listens; it has them safe when this returns."""
        host, _, port = self._site.source.partition(":")
        found: list[socket.socket] = []

        def connects() -> bool:
            self._check()
            try:
                found.append(socket.create_connection((host, int(port)), timeout=WAIT_S))
            except OSError:
                return False
            return True

        wait_until(connects, lambda: f"a source at {self._site.source}", LONG_S, every=0.2)
        with found[0] as connection:
            connection.sendall(payload(part))
            finish(connection)
        self._sent += part

    def receive(self) -> None:
        """Wait until all has come that the messages give, and nothing else."""
        expected = sorted(counted(self._sent))

        def has_come() -> bool:
            self._check()
            return len(self._receiver.lines()) >= len(expected)

        wait_until(has_come, lambda: f"{len(expected)} lines, have {len(self._receiver.lines())}", LONG_S, every=0.2)
        assert sorted(self._receiver.lines()) == expected


def test_the_printed_command_runs_the_driver_on_yarn(
    hadoop: Hadoop, site: Site, packed: Callable[[str], Path], tmp_path: Path
) -> None:
    """Its application master is killed once; YARN's next attempt goes on."""
    log = tmp_path / "submit.log"
    with Receiver() as receiver:
        addresses = ("--in", site.source, "--out", receiver.address, "--checkpoint", f"{hadoop.url}/python")
        cluster = ("--deploy-mode", "cluster", "--conf", "spark.executor.instances=2", "--dry-run")
        done = wallaroo("submit", packed("python"), *addresses, *options(site, *cluster))
        assert done.returncode == 0, done.stderr
        environment = os.environ | hadoop.environment()
        with log.open("wb") as file:
            process = subprocess.Popen(
                shlex.split(done.stdout), env=environment, cwd=tmp_path, stdout=file, stderr=subprocess.STDOUT
            )

        def check() -> None:
            assert process.poll() is None, log.read_text(errors="replace")[-4000:] + hadoop.said()

        try:
            exchange = Exchange(site, receiver, check)
            exchange.send(PARTS[0])
            exchange.receive()
            (master,) = hadoop.containers(MASTER)
            os.kill(master, signal.SIGKILL)
            exchange.send(PARTS[1])  # the gateway needs no driver

            def has_another() -> bool:
                check()
                return hadoop.containers(MASTER) not in ([], [master])

            wait_until(has_another, lambda: "another attempt", LONG_S)
            exchange.send(PARTS[2])
            exchange.receive()
            operator = Path("/python/spark/state/0")
            stored = [path for path in map(Path, hadoop.files(str(operator))) if path.parent == operator]
            assert sorted(path.name for path in stored if path.name.isdigit()) == ["0", "1", "2", "3"]  # as CONF says
        finally:
            process.terminate()
            process.wait(STOP_S)
            hadoop.end_applications()


def test_submit_ends_as_the_driver_on_yarn_does(hadoop: Hadoop, site: Site, packed: Callable[[str], Path]) -> None:
    cluster = options(site, "--deploy-mode", "cluster")
    place, environment = f"{hadoop.url}/go", hadoop.environment()
    with Receiver() as receiver:
        idle = ("--stop-when-idle", "5")
        with Run(
            packed("go"), receiver, place, *cluster, *idle, source=site.source, verb="submit", **environment
        ) as run:
            exchange = Exchange(site, receiver, lambda: _check(run))
            exchange.send(PARTS[0])
            assert ended(run) == 0, run.said()
            assert sorted(receiver.lines()) == sorted(counted(PARTS[0]))
            notes = [json.loads(line)["note"] for line in run.output]
            identity = notes[0].split()[0]
            assert notes[0] == f"{identity} is submitted; `yarn logs -applicationId {identity}` shows what it says"
            assert notes[-1] == f"{identity}: finished"
            assert run.errors == []
        # No worker starts with this interpreter, on any executor.
        failing = ("--conf", "spark.wallaroo.worker.python=/no/such/python", "--conf", "spark.yarn.maxAppAttempts=1")
        with Run(
            packed("python"), receiver, f"{place}-2", *cluster, *failing, "--fresh", source=site.source,
            verb="submit", **environment,
        ) as run:  # fmt: skip
            assert ended(run) == 4, run.said()
            identity = json.loads(run.output[0])["note"].split()[0]
            (finding,) = json.loads(run.errors[0])
            assert finding["code"] == "R685"
            assert finding["message"] == f"{identity} on yarn failed; the driver exited with status 4"
            assert finding["fix"].startswith(f"`yarn logs -applicationId {identity}` shows what driver and executors")
            assert "W4" in hadoop.said(identity)


def test_a_driver_beside_yarn_is_run_again(hadoop: Hadoop, site: Site, packed: Callable[[str], Path]) -> None:
    """Client mode: the driver is killed, and its keeper starts the next one."""
    again = options(site, "--restart", "on-failure")
    place, environment = f"{hadoop.url}/client", hadoop.environment()
    with Receiver() as receiver, Run(
        packed("go"), receiver, place, *again, source=site.source, verb="submit", SPARK_LOCAL_IP=LOOPBACK,
        **environment,
    ) as run:  # fmt: skip
        exchange = Exchange(site, receiver, lambda: _check(run))
        exchange.send(PARTS[0])
        exchange.receive()
        (driver,) = [pid for pid in descendants(run.process.pid) if b"wallaroo_runtime.cli.start" in cmdline(pid)]
        os.kill(driver, signal.SIGKILL)
        exchange.send(PARTS[1])
        exchange.receive()
        assert "the driver ended; it was ended by SIGKILL; it is started again in 1 s" in "".join(run.errors)
        assert run.stop() == 0, run.said()


def _check(run: Run) -> None:
    assert run.process.poll() is None, run.said()


def test_steps_in_a_job_of_somebody_s_own(hadoop: Hadoop, tmp_path: Path) -> None:
    """`spark-submit` alone: no service of ours, and no checkpoint of ours."""
    job = Job(tmp_path, "go", *on_yarn()[1:], "--conf", "spark.executor.instances=2", **hadoop.environment())
    job.finish(job.start())


def test_a_resource_manager_that_is_away_is_told(hadoop: Hadoop, site: Site, packed: Callable[[str], Path]) -> None:
    """The last one: it leaves no YARN."""
    hadoop.resource_manager.kill()
    arguments = ("--in", site.source, "--out", "127.0.0.1:9", "--checkpoint", f"{hadoop.url}/away")
    environment = os.environ | hadoop.environment()
    for mode in ("client", "cluster"):
        done = wallaroo("submit", packed("go"), *arguments, *options(site, "--deploy-mode", mode), env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith("R659 Spark master yarn cannot be reached; 127.0.0.1:")
