"""Starts Spark's Java virtual machine before PySpark is imported, at the same time as the rest of a start."""

import atexit
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from wallaroo_runtime.durable.file import private
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.master import SUBMITTED
from wallaroo_runtime.spark.machine.settings import spark_home, start_settings
from wallaroo_runtime.spark.machine.temporary import temporary_directory, temporary_lock
from wallaroo_runtime.system.class_archive import ArchiveWriter
from wallaroo_runtime.system.java import QUICK_JAVA
from wallaroo_runtime.system.process import dying_with_parent
from wallaroo_runtime.system.stop import SIGNALS

PRIVATE = 0o077  # umask of Java
POLL_S = 0.02


class VirtualMachine:
    """A Java virtual machine that this process starts. The system kills it when the starting thread ends.

    But a JVM that may write an archive of its classes ends when its standard input ends, and so after this process. It
    only writes the archive if `has_worked` is set: an archive of a run without messages lacks most classes of a query.

    Java also holds the lock of the temporary directory. If that directory were gone, Java would neither read its
    standard input nor end. A signal that asks a run to end must not end Spark before the query is stopped. So Java is
    in a session of its own, where it gets no signals to the process group (from shells and `timeout`). And Java ignores
    signals to single processes (from a service manager).

    Args:
        output: File for the output of Java.

    Attributes:
        settings: The settings with which Spark starts.
        process: The process: first a shell script of Spark's, later Java.
        has_worked: Whether a query in it has processed messages.

    Raises:
        OSError: Spark's start script is missing.
    """

    def __init__(self, settings: dict[str, str], output: Path) -> None:
        self.settings, self.has_worked, self._is_used = settings, False, False
        self._classes = ArchiveWriter(" ".join(settings.values()))
        bind = dying_with_parent(signal.SIGKILL) if self._classes.directory is None else None
        self._told = Path(tempfile.mkdtemp(prefix="gateway-", dir=temporary_directory()), "address")
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        more = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        # A small Java virtual machine computes the command of the large one.
        environment = {"SPARK_LAUNCHER_OPTS": QUICK_JAVA, **os.environ}
        environment |= {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told)}
        environment |= english(environment)
        with open(output, "ab", opener=private) as log:
            self.process = subprocess.Popen(
                [os.path.join(spark_home(), "bin", "spark-submit"), *options, *more],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=PRIVATE,
                preexec_fn=lambda: _prepare(bind),
                pass_fds=(temporary_lock(), *self._classes.descriptors),
            )
        _at_end(self.end)  # end Java before this process removes the directory to which Java writes

    def wait(self) -> tuple[int, str]:
        """Wait for Java, and return its port and secret for PySpark. From now on PySpark uses this Java.

        Raises:
            OSError: Java has ended.
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
        """End Java now, but not if it ends with this process anyway, or first writes an archive of its classes.

        With this archive later runs start faster.

        Returns:
            The directory of the archive if Java will write one, else None.
        """
        is_done = self._is_used and self._classes.directory is None  # PySpark uses it, and it ends with this process
        if is_done or self.process.poll() is not None:
            return None
        if self._is_used and self.has_worked and self._classes.take():
            return self._classes.directory
        self.kill()
        return None

    def kill(self) -> None:
        """Kill Java, even if PySpark uses it. To PySpark this looks like a crash of Java."""
        self.process.kill()
        self.process.communicate()


def is_launched() -> bool:
    """Say whether PySpark already has a Java virtual machine."""
    pyspark = sys.modules.get("pyspark")
    return SUBMITTED in os.environ or (pyspark is not None and pyspark.SparkContext._gateway is not None)


def launch(
    master: str, directory: Path, settings: dict[str, str], *, makes_archive: bool = False
) -> VirtualMachine | None:
    """Begin to start Java, and return it; None if PySpark already has a Java virtual machine.

    Args:
        master: Address of the Spark master, as for spark-submit.
        directory: Directory of the logs; created if it is missing.
        makes_archive: Whether Java may outlive this process by a minute, to write an archive of its classes.

    Raises:
        RunError: R611 if Spark's start script is missing.
    """
    if is_launched():
        return None
    output = directory / "spark.out"
    try:
        machine = VirtualMachine(start_settings(master, directory, settings, makes_archive=makes_archive), output)
    except OSError as error:
        raise RunError.of("R611", reason=f"Spark did not start: {error}", fix="install PySpark again") from error
    return machine


def english(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that make errors of the system English, since `failure/table.py` knows the errors by their text.

    Example:
        >>> english({"LC_ALL": "de_DE.UTF-8"})
        {'LC_CTYPE': 'de_DE.UTF-8', 'LC_ALL': '', 'LC_MESSAGES': 'C'}
    """
    everything = environment.get("LC_ALL", "")
    return ({"LC_CTYPE": everything, "LC_ALL": ""} if everything else {}) | {"LC_MESSAGES": "C"}


def _at_end(end: Callable[[], object]) -> None:
    """Call a function when this process ends, but not when a fork of this process ends."""
    parent = os.getpid()
    atexit.register(lambda: end() if os.getpid() == parent else None)


def _prepare(bind: Callable[[], None] | None) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if bind is not None:
        bind()
