"""A real HDFS that keeps the checkpoint, and a real YARN that runs drivers; both lose processes on the way."""

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
from support.remote import Site, counted, kill, running
from support.run import STOP_S, WAIT_S, Receiver, Run, finish, framed, wait_until, wallaroo
from support.spark_job import Job
from support.standalone import cmdline

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
CASE = Case("word_count")
TEXTS = [f"message number{i % 7} of{i % 1000} many" for i in range(20_000)]
PARTS = [TEXTS[at : at + 4_000] for at in range(0, len(TEXTS), 4_000)]
LONG_S = 600.0
MASTER = b"org.apache.spark.deploy.yarn.ApplicationMaster"
JARS = Path(pyspark.__file__).parent / "jars"
CONF = {
    "spark.yarn.jars": f"local:{JARS}/*",
    "spark.yarn.maxAppAttempts": "2",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": LOOPBACK,
    "spark.executorEnv.SPARK_LOCAL_IP": LOOPBACK,
    "spark.driver.memory": "1g",
    "spark.executor.memory": "640m",
    "spark.executor.instances": "2",
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


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return what packs the word count, once for each language."""
    folder = tmp_path_factory.mktemp("archives")

    def packed(language: str) -> Path:
        file = folder / f"{language}.tar.gz"
        if not file.exists():
            program = CASE.app(language)
            addresses = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
            done = wallaroo("pack", program, "-o", file, *addresses, seconds=LONG_S)
            assert done.returncode == 0, done.stderr
        return file

    return packed


def payload(part: list[str]) -> bytes:
    return framed(text.encode() for text in part)


def ended(run: Run) -> int:
    """Wait for the end of a run that ends by itself."""
    wait_until(lambda: run.process.poll() is not None, lambda: f"the end of the run:\n{run.said()}", LONG_S, every=0.2)
    return run.end()


def test_a_driver_killed_goes_on_from_hdfs(hadoop: Hadoop, site: Site) -> None:
    app, place = CASE.app("python"), f"{hadoop.url}/killed"
    with Receiver() as receiver:
        # Spark has stored the state of a micro-batch that is not yet done with.
        fault = {"WALLAROO_FAULT": "driver.before_publish:2"}
        with site.run(app, receiver, checkpoint=place, **fault) as first:
            begin = PARTS[0][:1]  # one micro-batch, whatever the pace of the gateway
            first.send(payload(begin))
            # It is the first micro-batch, or the second if Spark began with one without messages: then this is the end.
            some = len(counted(begin))
            wait_until(lambda: len(receiver.lines()) >= some or first.process.poll() is not None, first.said, WAIT_S)
            first.send(payload(PARTS[0][1:] + PARTS[1]))  # to the gateway, which outlives the driver
            assert ended(first) == -signal.SIGKILL
        with site.run(app, receiver, checkpoint=place) as second:
            assert f"continuing from {place}" in "".join(second.output)
            receiver.wait_for_lines(len(counted(PARTS[0] + PARTS[1])), second)
            # The repeated micro-batch has replaced that state: what could not be renamed would still be there.
            states = [name for name in hadoop.files("/killed/spark/state") if "changelog" in name]
            assert states
            assert not [name for name in states if name.endswith(".tmp")]
            second.send(payload(PARTS[2]))
            kill(second)
        with site.run(app, receiver, checkpoint=place) as third:
            third.send(payload(PARTS[3]))
            lines = receiver.wait_for_lines(len(counted(TEXTS[: 4 * 4_000])), third)
            assert third.last("bytes_by_file") == 0
            assert third.stop() == 0, third.said()
        assert sorted(lines) == sorted(counted(TEXTS[: 4 * 4_000]))
    other = Case("reverse").app("python")
    options = ("--checkpoint", place, "--master", "local[2]", "--in", site.source, "--out", "127.0.0.1:9")
    done = wallaroo("run", other, *options, *site.options())
    assert done.returncode == 1
    assert done.stderr.startswith(f'R603 checkpoint {place} belongs to application "')


def test_rescaled_in_hdfs_while_a_driver_is_left(hadoop: Hadoop, site: Site) -> None:
    app, place = CASE.app("python"), f"{hadoop.url}/rescaled"
    command = ("state", "rescale", place, "--partitions", 3, "--buckets", 5, *site.options())
    with Receiver() as receiver:
        with site.run(app, receiver, checkpoint=place) as first:
            first.send(payload(PARTS[0]))
            receiver.wait_for_lines(len(counted(PARTS[0])), first)
            killed = os.environ | {"WALLAROO_FAULT": "rescale.before_record:1", "TMPDIR": str(site.folder)}
            done = wallaroo(*command, seconds=LONG_S, env=killed)
            assert done.returncode == -signal.SIGKILL
            assert ended(first) == 1  # its gateway serves the rescale
            assert '"code": "R644"' in first.said()
        with site.run(app, receiver, checkpoint=place) as second:  # as if nobody had begun
            second.send(payload(PARTS[1]))
            receiver.wait_for_lines(len(counted(PARTS[0] + PARTS[1])), second)
            second.wait_for("messages_processed", len(PARTS[0] + PARTS[1]))  # committed, too
            assert second.stop() == 0, second.said()
        done = wallaroo(*command, seconds=LONG_S)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("3 shuffle partitions of 5 buckets, were 2 of 4; moved the states of 3 keys, ")
        assert sorted({name.split("/")[2] for name in hadoop.files("/rescaled") if "/spark" in name}) == ["spark-2"]
        with site.run(app, receiver, checkpoint=place) as third:
            third.send(payload(PARTS[2]))
            lines = receiver.wait_for_lines(len(counted(TEXTS[: 3 * 4_000])), third)
            assert third.stop() == 0, third.said()
        assert sorted(lines) == sorted(counted(TEXTS[: 3 * 4_000]))
    again = wallaroo(*command, seconds=LONG_S)
    assert again.stdout == "3 shuffle partitions of 5 buckets, as before; nothing to do\n", again.stderr


def test_a_file_system_that_cannot_be_used(site: Site) -> None:
    gone, unknown = f"hdfs://{LOOPBACK}:9/c", "hdfs://no-such-host/c"
    for place, reason, fix in (
        (gone, f"{LOOPBACK}:9: Connection refused", "start it, or correct the address"),
        (
            unknown,
            "a host cannot be reached: no-such-host",
            "start the server that listens there, or correct the address",
        ),
        (
            "s3a://bucket/c",
            "Spark's jars do not have a class",
            "add the jars that contain it, e.g. --conf spark.jars.packages=",
        ),
    ):
        options = ("--checkpoint", place, "--master", "local[2]", "--in", site.source, "--out", "127.0.0.1:9")
        done = wallaroo("run", CASE.app("python"), *options, *site.options(), seconds=60)
        assert done.returncode == 1
        first, last = done.stderr.strip().splitlines()
        assert first.startswith(f"R684 the file system of {place}")
        assert f" cannot be used; {reason}" in first
        assert last.startswith(f"  fix: {fix}")


def test_name_node_killed(hadoop: Hadoop, site: Site) -> None:
    app, place = CASE.app("go"), f"{hadoop.url}/lost"
    with Receiver() as receiver:
        with site.run(app, receiver, checkpoint=place) as first:
            first.send(payload(PARTS[0]))
            receiver.wait_for_lines(len(counted(PARTS[0])), first)
            hadoop.name_node.kill()
            first.send(payload(PARTS[1]))
            hadoop.name_node.start()  # as a service that is watched over would be
            receiver.wait_for_lines(len(counted(PARTS[0] + PARTS[1])), first)
            hadoop.name_node.kill()
            first.send(payload(PARTS[2]))
            assert ended(first) == 1
            (finding,) = json.loads(first.errors[-1])
            assert finding["code"] == "R611"
            assert "a host cannot be reached: " in finding["message"]
            assert finding["message"].endswith("Connection refused")
            assert finding["fix"].startswith("start the server that listens there, or correct the address; run again")
        hadoop.start_name_node()
        with site.run(app, receiver, checkpoint=place) as second:
            second.send(payload(PARTS[3]))
            lines = receiver.wait_for_lines(len(counted(TEXTS[: 4 * 4_000])), second)
            assert second.stop() == 0, second.said()
        assert sorted(lines) == sorted(counted(TEXTS[: 4 * 4_000]))


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
    hadoop: Hadoop, site: Site, archives: Callable[[str], Path], tmp_path: Path
) -> None:
    """Its application master is killed once; YARN's next attempt goes on."""
    log = tmp_path / "submit.log"
    with Receiver() as receiver:
        addresses = ("--in", site.source, "--out", receiver.address, "--checkpoint", f"{hadoop.url}/python")
        cluster = ("--deploy-mode", "cluster", "--dry-run")
        done = wallaroo("submit", archives("python"), *addresses, *options(site, *cluster))
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


def test_submit_ends_as_the_driver_on_yarn_does(hadoop: Hadoop, site: Site, archives: Callable[[str], Path]) -> None:
    cluster = options(site, "--deploy-mode", "cluster")
    place, environment = f"{hadoop.url}/go", hadoop.environment()
    with Receiver() as receiver:
        idle = ("--stop-when-idle", "5")
        with Run(
            archives("go"), receiver, place, *cluster, *idle, source=site.source, verb="submit", **environment
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
            archives("python"), receiver, f"{place}-2", *cluster, *failing, "--fresh", source=site.source,
            verb="submit", **environment,
        ) as run:  # fmt: skip
            assert ended(run) == 4, run.said()
            identity = json.loads(run.output[0])["note"].split()[0]
            (finding,) = json.loads(run.errors[0])
            assert finding["code"] == "R685"
            assert finding["message"] == f"{identity} on yarn failed; the driver exited with status 4"
            assert finding["fix"].startswith(f"`yarn logs -applicationId {identity}` shows what driver and executors")
            assert "W4" in hadoop.said(identity)


def test_a_driver_beside_yarn_is_run_again(hadoop: Hadoop, site: Site, archives: Callable[[str], Path]) -> None:
    """Client mode: the driver is killed, and its keeper starts the next one."""
    again = options(site, "--restart", "on-failure")
    place, environment = f"{hadoop.url}/client", hadoop.environment()
    with Receiver() as receiver, Run(
        archives("go"), receiver, place, *again, source=site.source, verb="submit", SPARK_LOCAL_IP=LOOPBACK,
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
    job = Job(tmp_path, "go", *on_yarn()[1:], **hadoop.environment())
    job.finish(job.start())


def test_a_resource_manager_that_is_away_is_told(hadoop: Hadoop, site: Site, archives: Callable[[str], Path]) -> None:
    """The last one: it leaves no YARN."""
    hadoop.resource_manager.kill()
    arguments = ("--in", site.source, "--out", "127.0.0.1:9", "--checkpoint", f"{hadoop.url}/away")
    environment = os.environ | hadoop.environment()
    for mode in ("client", "cluster"):
        done = wallaroo(
            "submit", archives("go"), *arguments, *options(site, "--deploy-mode", mode), env=environment, seconds=60
        )
        assert done.returncode == 1
        assert done.stderr.startswith("R659 Spark master yarn cannot be reached; 127.0.0.1:")
