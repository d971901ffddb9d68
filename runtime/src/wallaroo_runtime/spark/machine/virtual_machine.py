"""Starts Spark's Java virtual machine before PySpark is imported: all else that a start does goes on meanwhile."""

import atexit
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from wallaroo_runtime.durable.file import private
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.master import SUBMITTED
from wallaroo_runtime.spark.machine.settings import spark_home, start_settings
from wallaroo_runtime.spark.machine.temporary import temporary_directory, temporary_lock
from wallaroo_runtime.system.class_archive import ArchiveWriter
from wallaroo_runtime.system.stop import SIGNALS

PRIVATE = 0o077  # umask
POLL_S = 0.02
# Of the small one that works out the command of the large one.
LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class VirtualMachine:
    """A Java virtual machine that starts; it ends when its standard input does, thus with this process.

    It has the lock of the temporary directory, too: without that directory it would stay, and never read its input.
    No signal that asks a run to end must end Spark before the query is stopped: Java is a session of its own, against
    those for the process group, as shells and `timeout` send them, and ignores those for each process, as a service
    manager sends them.

    Args:
        output: File for what it prints.

    Attributes:
        settings: Those with which it starts.
        process: The process, which is Java's from some moment on.

    Raises:
        OSError: The program of Spark that starts it is not there.
    """

    def __init__(self, settings: dict[str, str], output: Path) -> None:
        self.settings, self._is_used = settings, False
        self._classes = ArchiveWriter(" ".join(settings.values()))
        self._told = Path(tempfile.mkdtemp(prefix="gateway-", dir=temporary_directory()), "address")
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        more = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        environment = {"SPARK_LAUNCHER_OPTS": LAUNCHER_OPTIONS, **os.environ}
        environment |= {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told)}
        with open(output, "ab", opener=private) as log:
            self.process = subprocess.Popen(
                [os.path.join(spark_home(), "bin", "spark-submit"), *options, *more],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=PRIVATE,
                preexec_fn=_ignore_signals,
                pass_fds=(temporary_lock(), *self._classes.descriptors),
            )
        _at_end(self.end)  # this process removes the directory to which Java writes

    def wait(self) -> tuple[int, str]:
        """Return port and secret for PySpark, which then holds the process.

        Raises:
            OSError: It has ended.
        """
        while not self._told.is_file():
            if self.process.poll() is not None:
                self.end()
                reason = f"its process has ended with exit code {self.process.returncode}"
                raise OSError(reason)
            time.sleep(POLL_S)
        answer = self._told.read_bytes()
        self._is_used = True
        length = int.from_bytes(answer[4:8], "big")
        return int.from_bytes(answer[:4], "big"), answer[8 : 8 + length].decode()

    def end(self) -> Path | None:
        """End it, unless it is PySpark's and writes its classes when it ends with this process.

        Returns:
            The directory where it will write them.
        """
        is_done = self._is_used and self._classes.directory is None  # PySpark's, and ends as soon as this process
        if is_done or self.process.poll() is not None:
            return None
        if self._is_used and self._classes.take():
            return self._classes.directory
        self.kill()
        return None

    def kill(self) -> None:
        """End it, whatever it does; PySpark then takes it for a crash."""
        _end(self.process)


def is_launched() -> bool:
    """Say whether PySpark has a Java virtual machine already."""
    pyspark = sys.modules.get("pyspark")
    return SUBMITTED in os.environ or (pyspark is not None and pyspark.SparkContext._gateway is not None)


def launch(master: str, directory: Path, settings: dict[str, str]) -> VirtualMachine | None:
    """Begin to start Java; None where it runs already.

    Args:
        master: As spark-submit takes it.
        directory: Where the logs go; made when it is missing.

    Raises:
        RunError: R611, the program of Spark that starts it is not there.
    """
    if is_launched():
        return None
    output = directory / "spark.out"
    try:
        machine = VirtualMachine(start_settings(master, directory, settings), output)
    except OSError as error:
        raise RunError.of("R611", reason=f"Spark did not start: {error}", fix="install PySpark again") from error
    return machine


def _at_end(end: Callable[[], object]) -> None:
    """Call a function when this process ends; its forks do not."""
    parent = os.getpid()
    atexit.register(lambda: end() if os.getpid() == parent else None)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
