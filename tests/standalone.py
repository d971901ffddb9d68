"""A Spark standalone cluster on loopback: a master and workers as processes of their own, from the PySpark package."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark

from run import wait_until

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_S = 90.0
DEPLOY = "org.apache.spark.deploy"
EXECUTOR = b"CoarseGrainedExecutorBackend"
MEMORY = "1g"
# Spark's own daemons forget a lost worker after a minute by default.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.worker.timeout=15"


class Daemon:
    """A master or worker, with a directory and a log of its own."""

    def __init__(self, name: str, folder: Path, *arguments: str, python: str = sys.executable) -> None:
        self.name, self.folder = name, folder
        folder.mkdir(parents=True)
        self.log = folder / "log"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        environment = kept | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": python,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(SPARK_CLASS), *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        """Return what the daemon has written."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, pattern: str) -> str:
        """Wait for a line, and return the first group of it."""

        def found() -> bool:
            assert self.process.poll() is None, f"{self.name} ended:\n{self.said()[-2000:]}"
            return re.search(pattern, self.said()) is not None

        wait_until(found, lambda: f"{pattern!r} of {self.name}:\n{self.said()[-2000:]}", START_S, every=0.2)
        match = re.search(pattern, self.said())
        assert match is not None
        return match[1]

    def executors(self) -> list[int]:
        """Return the JVMs that a worker has started for applications."""
        return [pid for pid in descendants(self.process.pid) if EXECUTOR in cmdline(pid)]

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the daemon; its executors notice by themselves."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(timeout=30)


class Cluster:
    """A master, and workers that come and go.

    Args:
        folder: Where each daemon gets its directory.

    Attributes:
        url: Address of the master.
        workers: All that were started, also those that were killed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[Daemon] = []
        arguments = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.master = Daemon("master", folder / "master", f"{DEPLOY}.master.Master", *arguments)
        try:
            self.url = self.master.wait_for(r"Starting Spark master at (spark://\S+)")
        except BaseException:
            self.close()
            raise

    def add_worker(self, cores: int = 1, **variables: str) -> Daemon:
        """Start a worker and wait until the master knows it."""
        number = len(self.workers) + 1
        folder = self.folder / f"worker-{number}"
        arguments = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--work-dir", str(folder / "work"))
        worker = Daemon(
            f"worker-{number}", folder, f"{DEPLOY}.worker.Worker", "--cores", str(cores), "--memory", MEMORY,
            *arguments, self.url, **variables,
        )  # fmt: skip
        self.workers.append(worker)
        worker.wait_for(r"(Successfully registered) with master")
        return worker

    def executors(self) -> list[int]:
        """Return all executors' JVMs."""
        return [pid for worker in self.workers for pid in worker.executors()]

    def close(self) -> None:
        """End everything: executors and what they started, then the daemons."""
        for daemon in [*self.workers, self.master]:
            for pid in [*daemon.executors(), *([] if daemon.process.poll() is not None else [daemon.process.pid])]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            daemon.process.wait(timeout=30)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def options(cluster: Cluster, **more: str) -> list[str]:
    """Return the options of a run on the cluster: one core for each executor, the driver on loopback."""
    conf: Mapping[str, str] = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.cores": "1",
        "spark.executor.memory": "640m",
        "spark.sql.shuffle.partitions": "4",
        # A machine that has disappeared is found by its heartbeat alone.
        "spark.network.timeout": "30s",
        "spark.network.timeoutInterval": "5s",
        "spark.executor.heartbeatInterval": "5s",
    } | {name.replace("_", "."): value for name, value in more.items()}
    return ["--master", cluster.url, *(item for pair in conf.items() for item in ("--conf", "=".join(pair)))]


def descendants(pid: int) -> Iterator[int]:
    """Yield a process's children, their children, and so on."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from descendants(child)


def cmdline(pid: int) -> bytes:
    """Return the command line of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
