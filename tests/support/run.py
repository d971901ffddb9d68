"""Real runs: `wallaroo run` as a process, a receiver and senders over real sockets, every wait with a deadline."""

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from wallaroo_runtime.spark.machine.settings import CLASS_PATH, start_settings
from wallaroo_runtime.system.java import QUICK_JAVA

TESTS = Path(__file__).resolve().parents[1]
CASES = TESTS / "cases"
WALLAROO = Path(sys.executable).with_name("wallaroo")
READY = "Application has successfully initialized."
# Options of `wallaroo run`. Short batches in real-time mode, so that deaths come at their borders, too.
MODES = {"microbatch": (), "realtime": ("--mode", "realtime", "--conf", "spark.wallaroo.realtime.batchSeconds=2")}
# For programs that make a session of Spark: without Java's optimizing compiler and Spark's page they take half of the
# processor time. Without generated code, as in our runs, the notebook takes a fifth less.
QUICK_SPARK = {
    "PYSPARK_SUBMIT_ARGS": f"--driver-java-options '{QUICK_JAVA}' --conf spark.ui.enabled=false "
    "--conf spark.sql.codegen.factoryMode=NO_CODEGEN --conf spark.sql.codegen.wholeStage=false pyspark-shell",
}
# What bounds a test that has gone wrong; a machine full of other tests is slow, and no test waits for one of these.
START_S, WAIT_S, STOP_S = 240.0, 240.0, 120.0


def with_archive(directory: Path) -> dict[str, str]:
    """Return QUICK_SPARK with the class archive of our runs, if there is one, and the jar that must come first then.

    A session that starts so has the jar from its start; test_dataframe_session.py gives it to one that has not.
    """
    own = start_settings("local[2]", directory, {})
    archive = re.search(r"-XX:SharedArchiveFile=[^\"]+", own["spark.driver.extraJavaOptions"])
    first = f"--driver-class-path '{own[CLASS_PATH]}' " if archive else ""
    arguments = QUICK_SPARK["PYSPARK_SUBMIT_ARGS"].replace(QUICK_JAVA, f"{QUICK_JAVA} {archive[0] if archive else ''}")
    return {**QUICK_SPARK, "PYSPARK_SUBMIT_ARGS": first + arguments}


def wait_until(
    holds: Callable[[], bool], what: Callable[[], str], seconds: float = WAIT_S, every: float = 0.05
) -> None:
    """Wait until a condition holds; after `seconds` fail and say what was waited for."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what()}"
        time.sleep(every)


def framed(payloads: Iterable[bytes]) -> bytes:
    """Put four bytes of length before each payload."""
    return b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)


def wallaroo(*arguments: object, seconds: float = 180.0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [str(WALLAROO), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, **options)


class Sink(Protocol):
    """Whatever listens where a sink sends to."""

    address: str


class Receiver:
    """Listens where a sink sends to, and keeps every byte in the order of arrival.

    Args:
        listener: Listens already; else on loopback.
    """

    def __init__(self, listener: socket.socket | None = None) -> None:
        self.listener = listener or socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self.listener.getsockname())
        self.blocks: list[bytes] = []
        self.size = 0
        self.lock = threading.Lock()
        self.is_closed = False
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self.is_closed:
                connection, _ = self.listener.accept()
                with connection, contextlib.suppress(ConnectionResetError):  # by an egress that was killed
                    self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        while not self.is_closed and (block := connection.recv(1 << 20)):
            with self.lock:
                self.blocks.append(block)
                self.size += len(block)

    def data(self) -> bytes:
        """Return what has arrived."""
        with self.lock:
            self.blocks = [b"".join(self.blocks)]
            return self.blocks[0]

    def lines(self) -> list[str]:
        """Return the whole lines that have arrived."""
        return self.data().decode().split("\n")[:-1]

    def wait_for_lines(self, count: int, run: "Run") -> list[str]:
        """Wait until at least `count` lines are there; fail at once when the run has ended."""
        run.wait_while_alive(lambda: len(self.lines()) >= count, lambda: f"{count} lines, have {len(self.lines())}")
        return self.lines()

    def close(self) -> None:
        """Stop listening."""
        self.is_closed = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def dial(address: tuple[str, int]) -> socket.socket:
    """Connect to a source of this machine."""
    return socket.create_connection(address, timeout=WAIT_S)


class Run:
    """`wallaroo run` in a process of its own, with the progress that it prints as JSON."""

    def __init__(
        self,
        app: object,
        receiver: Sink | None,
        checkpoint: Path | str,
        *options: object,
        source: str = "127.0.0.1:0",
        verb: str = "run",
        prefix: tuple[object, ...] = (),
        dial: Callable[[tuple[str, int]], socket.socket] = dial,
        **environment: str,
    ) -> None:
        self.checkpoint, self._dial = checkpoint, dial
        inputs, outputs = ["--in", source] if source else [], ["--out", receiver.address] if receiver else []
        command = [
            *prefix, WALLAROO, verb, app, *inputs, *outputs, "--checkpoint", checkpoint, "--master", "local[2]",
            "--json", *options,
        ]  # fmt: skip
        self.reports: list[dict[str, Any]] = []
        self.output: list[str] = []
        self.errors: list[str] = []
        self.is_ready = False
        self.process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env=os.environ | environment,
        )  # fmt: skip
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if not line.startswith("{"):
                self.errors.append(line)
                continue
            self.output.append(line)
            self.reports.append(json.loads(line))
            self.is_ready |= self.reports[-1].get("state") == "initialized"

    def said(self) -> str:
        """Return the end of what was printed."""
        return "".join(self.output[-5:] + self.errors[-40:])

    def wait_while_alive(self, holds: Callable[[], bool], what: Callable[[], str], seconds: float = WAIT_S) -> None:
        """Wait for a condition of a run that must go on."""

        def checked() -> bool:
            assert self.process.poll() is None, f"ended ({self.process.returncode}) before {what()}:\n{self.said()}"
            return holds()

        wait_until(checked, lambda: f"{what()}; the run said:\n{self.said()}", seconds)

    def ready(self) -> "Run":
        """Wait until sources listen and the query is active."""
        self.wait_while_alive(lambda: self.is_ready, lambda: "the application to be initialized", START_S)
        return self

    def addresses(self) -> list[tuple[str, int]]:
        """Return where the sources listen."""
        (initialized,) = [report for report in self.reports if report.get("state") == "initialized"]
        found = [source["address"].rpartition(":") for source in initialized["sources"]]
        return [(host, int(port)) for host, _, port in found]

    def connect(self, source: int = 0) -> socket.socket:
        """Connect to a source, by number."""
        return self._dial(self.addresses()[source])

    def send(self, data: bytes, piece: int = 0) -> None:
        """Send bytes on one connection, half-close, and wait for the source's EOF."""
        with self.connect() as connection:
            if piece:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for at in range(0, len(data), piece):
                    connection.sendall(data[at : at + piece])
            else:
                connection.sendall(data)
            finish(connection)

    def last(self, name: str) -> Any:
        """Return a number of the last progress report."""
        return next((report[name] for report in reversed(self.reports) if name in report), 0)

    def wait_for(self, name: str, at_least: int) -> None:
        """Wait until a number of the progress has been reached."""
        self.wait_while_alive(lambda: self.last(name) >= at_least, lambda: f"{name} {at_least}, is {self.last(name)}")

    def stop(self) -> int:
        """End it as a user does, with Ctrl-C; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self, seconds: float = STOP_S) -> int:
        """Wait for its end; returns its exit code."""
        wait_until(lambda: self.process.poll() is not None, lambda: f"the end of the run:\n{self.said()}", seconds)
        self.thread.join(timeout=10)
        return int(self.process.returncode)

    def processes(self, pattern: str) -> list[int]:
        """Return the processes whose command line holds a text, such as the path of this run's checkpoint."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                pid = int(entry.name)
                if pattern.encode() in (entry / "cmdline").read_bytes():
                    found.append(pid)
        return found

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, by force if it must be, and close its streams."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=STOP_S)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=10)
        self.thread.join(timeout=10)
        if self.process.stderr is not None:
            self.process.stderr.close()


def finish(connection: socket.socket) -> None:
    """Half-close and wait for EOF: by then everything is in the journal."""
    connection.shutdown(socket.SHUT_WR)
    readable, _, _ = select.select([connection], [], [], WAIT_S)
    assert readable, "no EOF after the half-close"
    rest = connection.recv(1)
    assert rest == b"", f"a source said {rest!r}"
