"""Runs a real Apache Kafka on this machine: one node without ZooKeeper, whose jars Maven fetches."""

import base64
import contextlib
import os
import signal
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from wallaroo_runtime.durable.file import private, replace_file
from wallaroo_runtime.errors import USAGE, RunError, host_port
from wallaroo_runtime.system.class_archive import archive_option, is_being_made
from wallaroo_runtime.system.java import QUICK_JAVA, java_program
from wallaroo_runtime.system.lock import TRY, take_lock
from wallaroo_runtime.system.maven import PATIENT, Waiting, fetched_jars
from wallaroo_runtime.system.process import dying_with_parent

VERSION = "4.1.1"
# Without slf4j-simple Kafka would not log why it ends.
COORDINATES = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
JAVA_OPTIONS = ("-Xmx512m", *QUICK_JAVA.split())
LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
)
START_S, STOP_S = 180.0, 60.0
POLL_S = 0.05
ANSWER_S = 5.0
ANY = ("0.0.0.0", "::", "")
PROPERTIES, LOCK = "server.properties", "lock"
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)  # length, kind, version and id of the request; no client


class Broker:
    """A Kafka node, whose directory has its files and the records of its topics.

    The broker is a Java process. It ends with the thread that started it.

    Args:
        directory: Directory for topics, settings and log; created if it does not exist, private to the user.
        host: Host at which it listens. Other machines reach the broker unless this is a loopback address.
        port: Port at which it listens; 0 for any free port. The broker keeps the port when it is started again.

    Attributes:
        address: HOST:PORT by which clients reach the broker, once it was started.
    """

    def __init__(
        self, directory: Path, host: str = "127.0.0.1", port: int = 0, settings: Mapping[str, str] | None = None
    ) -> None:
        self.directory, self._host, self._port = directory.absolute(), host, port
        self._settings = dict(settings or {})
        self.address = ""
        self.log = self.directory / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, waiting: Waiting = PATIENT) -> None:
        """Start the broker, and return when it answers requests.

        Args:
            waiting: Returns a context that shows the user that Maven fetches jars, which is needed once.

        Raises:
            RunError: R714 if the address is in use; R616 if the directory cannot be used; R610 if another broker uses
                it; R675 if the jars cannot be fetched; R617 if the broker ended.
        """
        lock = self._take_directory()
        try:
            self._port = _free(self._host, self._port)
            self.address = host_port(_reached(self._host), self._port)
            jars = fetched_jars(f"broker-{VERSION}", COORDINATES, waiting=waiting)
            classes = archive_option("broker", VERSION, jars)
            self._write_settings()
            os.pwrite(lock, b"%-64s" % self.address.encode(), 0)
            if not (self.directory / "topics" / "meta.properties").exists():
                self._format(jars, "" if is_being_made(classes) else classes)  # this command loads few classes
            self._launch(jars, classes, lock)
        finally:
            os.close(lock)  # the broker has inherited the lock
        self._wait_ready()

    def _take_directory(self) -> int:
        """Create and lock the directory. Return the descriptor of the lock, which the broker inherits."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(self.directory.iterdir()) and not (self.directory / LOCK).is_file():
                raise RunError.of(
                    "R616", USAGE, path=self.directory, done="used by the broker", reason="it holds other files"
                )
            self.directory.chmod(0o700)
            return take_lock(self.directory / LOCK, TRY)
        except BlockingIOError as error:
            address = (self.directory / LOCK).read_text("utf-8", "replace").strip()
            raise RunError.of(
                "R610",
                USAGE,
                what=self.directory,
                holder=f"the broker at {address or 'an unknown address'}",
                own="--data and --listen",
            ) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise RunError.of("R616", USAGE, path=self.directory, done="used by the broker", reason=reason) from error

    def _write_settings(self) -> None:
        controller = f"127.0.0.1:{_free('127.0.0.1', 0)}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": controller,
            "listeners": f"PLAINTEXT://{host_port(self._host, self._port)},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.directory / "topics"),
            "auto.create.topics.enable": "false",
            # One node has one copy of everything, also of Kafka's data about groups and transactions.
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "8",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "8",
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        replace_file(self.directory / PROPERTIES, text.encode())

    def _command(self, jars: Path, classes: str, program: str, *arguments: str) -> list[str]:
        java = java_program() or "java"
        kept = [classes] if classes else []
        return [java, *JAVA_OPTIONS, *kept, *LOGGING, "-cp", f"{jars}/*", program, *arguments]

    def _format(self, jars: Path, classes: str) -> None:
        """Prepare the directory for Kafka, which is needed once for each directory."""
        name = cluster_id(uuid.uuid4().bytes)
        arguments = ("format", "--standalone", "-t", name, "-c", str(self.directory / PROPERTIES))
        with open(self.log, "ab", opener=private) as log:
            command = self._command(jars, classes, "kafka.tools.StorageTool", *arguments)
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                umask=0o077,
                timeout=START_S,
                check=False,
                preexec_fn=dying_with_parent(signal.SIGKILL),
            )
        if done.returncode:
            raise self.failure(reason=f"its directory was not prepared, exit code {done.returncode}")

    def _launch(self, jars: Path, classes: str, lock: int) -> None:
        with open(self.log, "ab", opener=private) as log:
            self._process = subprocess.Popen(
                self._command(jars, classes, "kafka.Kafka", str(self.directory / PROPERTIES)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,  # only this program gets Ctrl-C of the terminal; it then stops the broker
                umask=0o077,
                pass_fds=(lock,),
                preexec_fn=dying_with_parent(signal.SIGKILL),  # in order it would take long, and hold the lock
            )

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while not self._answers():
            if not self.is_alive:
                raise self.failure(reason="it did not start")
            if time.monotonic() > deadline:
                self.stop()
                raise self.failure(reason=f"it was not ready after {START_S:g} s")
            time.sleep(POLL_S)

    def _answers(self) -> bool:
        """Return whether the broker answers a request. It accepts connections before it can answer."""
        try:
            host = "127.0.0.1" if self._host in ANY else self._host
            with socket.create_connection((host, self._port), timeout=ANSWER_S) as connection:
                connection.sendall(_API_VERSIONS)
                return bool(connection.recv(4))
        except OSError:
            return False

    @property
    def is_alive(self) -> bool:
        """Whether the broker's process runs."""
        return self._process is not None and self._process.poll() is None

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of the broker. Return whether the broker has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(timeout_s)
        return not self.is_alive

    def failure(self, reason: str) -> RunError:
        """Return the error for a failure of the broker, with Kafka's last error from the log."""
        lines = self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []
        errors = [line.partition("ERROR ")[2] for line in lines if " ERROR " in line]
        last = errors[-1] if errors else next((line.strip() for line in reversed(lines) if line.strip()), "")
        reason = f"{reason}; {last[:300]}" if last else reason
        return RunError.of("R617", process="broker", reason=reason, log=self.log)

    def stop(self) -> None:
        """End the broker in an orderly way. Its files stay, so it may be started again."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_S)
        self._process = None


def cluster_id(drawn: bytes) -> str:
    r"""Return 16 bytes as a cluster id in Kafka's form. It never begins with `-`, so no command takes it for an option.

    Example:
        >>> cluster_id(b"\xf8" + bytes(15))
        'eAAAAAAAAAAAAAAAAAAAAA'
    """
    first, *rest = drawn
    return base64.urlsafe_b64encode(bytes((first & 0x7F, *rest))).decode().rstrip("=")


def _reached(host: str) -> str:
    """Return the host that clients use to reach a broker that listens at `host`."""
    return socket.getfqdn() if host in ANY else host


def _free(host: str, port: int) -> int:
    """Return a port that is free: `port`, or any free port if `port` is 0.

    Raises:
        RunError: R714 if the port is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family) as listener:
            return int(listener.getsockname()[1])
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise RunError.of(
            "R714", USAGE, what="the broker", address=host_port(host, port), reason=reason, option="--listen"
        ) from error
