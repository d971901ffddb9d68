"""A Spark standalone cluster from the PySpark package, and the machines around it: each on a host of its own.

Master, workers, gateway, egress and driver see no directory of one another but the checkpoint, which gateway and egress
do not see either.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from support.host import Host, Scene, descendants
from support.remote import Service, start_all, token_setting
from support.run import Receiver, Run, wait_until
from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.java import QUICK_JAVA

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_S = 240.0
DEPLOY = "org.apache.spark.deploy"
EXECUTOR = b"CoarseGrainedExecutorBackend"
MEMORY = "1g"
PORT = 7010  # of the first source
AUTHENTICATION = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "of-the-cluster-of-the-tests",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
}
OF_DAEMONS = AUTHENTICATION | {"spark.master.rest.enabled": "false", "spark.ui.killEnabled": "false"}
PROTECTION = [f"-D{name}={value}" for name, value in OF_DAEMONS.items()]
# Spark's own daemons forget a lost worker after a minute by default.
FORGETS = "-Dspark.worker.timeout=15"
SETTINGS = {
    **AUTHENTICATION,
    "spark.executor.cores": "1",
    "spark.executor.memory": "640m",
    "spark.sql.shuffle.partitions": "4",
    # A machine that has disappeared is found by its heartbeat alone.
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
}


class Daemon:
    """A master or worker on a host, with a log there."""

    def __init__(self, host: Host, *arguments: str) -> None:
        self.host, self.log = host, host.folder / "log"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        environment = kept | host.environment() | {
            "SPARK_DAEMON_JAVA_OPTS": " ".join((QUICK_JAVA, FORGETS, *PROTECTION)),
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }  # fmt: skip
        common = ("--host", host.address, "--port", "0", "--webui-port", "0")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                list(map(str, (*host.entry, SPARK_CLASS, *arguments[:1], *common, *arguments[1:]))), env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        """Return what the daemon has written."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, pattern: str) -> str:
        """Wait for a line, and return the first group of it."""

        def found() -> bool:
            assert self.process.poll() is None, f"{self.host.name} ended:\n{self.said()[-2000:]}"
            return re.search(pattern, self.said()) is not None

        wait_until(found, lambda: f"{pattern!r} of {self.host.name}:\n{self.said()[-2000:]}", START_S, every=0.2)
        match = re.search(pattern, self.said())
        assert match is not None
        return match[1]

    def executors(self) -> list[int]:
        """Return the JVMs that a worker has started for applications."""
        return [pid for pid in descendants(self.process.pid) if EXECUTOR in cmdline(pid)]

    def lose(self) -> None:
        """Kill it and all that it has started, as if the machine were gone."""
        lost = [self.process.pid, *descendants(self.process.pid)]
        for pid in lost:
            kill(pid)
        self.process.wait(timeout=300)


class Cluster:
    """A master, and workers that come and go, each on a host of its own.

    Args:
        scene: Of the hosts; the others of the tests are there, too.

    Attributes:
        url: Address of the master.
        shared: The only directory that several hosts see; checkpoints are in it.
        classes: Java's archives of classes, which drivers see, too: without one a driver takes twice the processor
            time, and then a minute to write it.
        workers: All that were started, also those that were killed.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene, self.shared = scene, scene.folder / "shared"
        self.shared.mkdir()
        self.classes = scene.folder / "classes"
        self.classes.mkdir()
        for archive in (cache_directory() / "classes").glob("spark-*.jsa"):
            with contextlib.suppress(OSError):  # it has gone, or is on another disk
                (self.classes / archive.name).hardlink_to(archive)
        self.workers: list[Daemon] = []
        self.deployments = 0
        self.master = Daemon(scene.add("master"), f"{DEPLOY}.master.Master")
        self.url = self.master.wait_for(r"Starting Spark master at (spark://\S+)")

    def add_workers(self, count: int = 1) -> list[Daemon]:
        """Start workers and wait until the master knows them."""
        added = [self._start_worker() for _ in range(count)]
        for worker in added:
            worker.wait_for(r"(Successfully registered) with master")
        return added

    def _start_worker(self) -> Daemon:
        host = self.scene.add(f"worker-{len(self.workers) + 1}", self.shared)
        size = ("--cores", "1", "--memory", MEMORY, "--work-dir", str(host.folder / "work"))
        worker = Daemon(host, f"{DEPLOY}.worker.Worker", *size, self.url)
        self.workers.append(worker)
        return worker

    def alive(self, count: int) -> list[Daemon]:
        """Let there be so many workers, and return them."""
        alive = [worker for worker in self.workers if worker.process.poll() is None]
        alive += self.add_workers(count - len(alive))
        for worker in alive[count:]:
            worker.lose()
        return alive[:count]

    def executors(self) -> list[int]:
        """Return all executors' JVMs."""
        return [pid for worker in self.workers for pid in worker.executors()]

    def close(self) -> None:
        """End everything."""
        for daemon in [*self.workers, self.master]:
            daemon.lose()


class Deployment:
    """The machines of one run on a cluster: for the gateway, for the egress, and one after the other for drivers.

    Args:
        cluster: Its executors see the checkpoint.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.scene = cluster, cluster.scene
        cluster.deployments += 1
        self.name = f"run-{cluster.deployments}"
        self.checkpoint = f"file://{cluster.shared / self.name}"
        self.gateway, self.egress = self._service("gateway"), self._service("egress")
        self.drivers = 0

    def _service(self, kind: str) -> Service:
        host = self.scene.add(f"{self.name}-{kind}")
        return Service(kind, host.folder / "data", _token(host), f"{host.address}:0", entry=host.entry)

    def driver(self, archive: Path) -> tuple[Host, Path]:
        """Switch on a machine that has never seen the application; returns also its copy of an archive."""
        self.drivers += 1
        host = self.scene.add(f"{self.name}-driver-{self.drivers}", self.cluster.shared, self.cluster.classes)
        cache = host.folder / ".cache" / "wallaroo"
        cache.mkdir(parents=True)
        (cache / "classes").symlink_to(self.cluster.classes)
        return host, Path(shutil.copy(archive, host.folder))

    def source(self, count: int = 1) -> str:
        """Return where sources shall listen: on the gateway's host."""
        host = self.gateway.address.rpartition(":")[0]
        return ",".join(f"{host}:{PORT + number}" for number in range(count))

    def settings(self, host: Host) -> list[object]:
        """Return the options of a run on the cluster whose driver is on a host."""
        conf: Mapping[str, str] = SETTINGS | {
            "spark.driver.host": host.address,
            "spark.driver.bindAddress": host.address,
        }
        return ["--master", self.cluster.url, *(item for pair in conf.items() for item in ("--conf", "=".join(pair)))]

    def options(self, host: Host) -> list[object]:
        """Return the options of a run that uses the services, too."""
        services = ("--gateway", self.gateway.address, "--egress", self.egress.address, *token_setting(_token(host)))
        return [*self.settings(host), *services]

    def run(self, archive: Path, receiver: Receiver, *options: object, sources: int = 1, verb: str = "submit") -> Run:
        """Run a copy of an archive on a new machine, with the sources at the gateway."""
        host, app = self.driver(archive)
        return Run(
            app, receiver, self.checkpoint, *self.options(host), *options, source=self.source(sources), verb=verb,
            prefix=host.entry, dial=self.scene.connect, **host.environment(),
        )  # fmt: skip

    def __enter__(self) -> "Deployment":
        start_all(self.gateway, self.egress)
        return self

    def __exit__(self, *_: object) -> None:
        for service in (self.gateway, self.egress):
            with contextlib.suppress(ProcessLookupError):
                service.end(signal.SIGKILL)


def read_nothing_from_files(run: Run) -> None:
    """Check that tasks read the journal over the network alone."""
    run.wait_for("bytes_by_grpc", 1)
    assert run.last("bytes_by_file") == 0


def _token(host: Host) -> Path:
    """Return the host's copy of the file with the token."""
    file = host.folder / "token"
    if not file.exists():
        file.touch(0o600)
        file.write_text("0123456789abcdef" * 3, encoding="ascii")
    return file


def kill(pid: int) -> None:
    """Kill a process and wait for its end."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_gone(pid), lambda: f"the end of {pid}")


def is_gone(pid: int) -> bool:
    """Say whether a process has ended; one that waits to be reaped has."""
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True


def cmdline(pid: int) -> bytes:
    """Return the command line of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
