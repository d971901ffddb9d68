"""One program for Goka, built with our import paths and with Goka's own, and what both make of the same topics."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer

from support.kafka import Broker
from support.run import READY, TESTS, WALLAROO, wait_until, wallaroo

PROGRAM = TESTS / "bench" / "goka_count"
GOKA_MODULE = TESTS.parent / "api" / "go" / "goka"
OURS, GOKA = "wallarooapi/goka", "github.com/lovoo/goka"
START_S, READ_S = 900.0, 900.0


def build_ours(folder: Path, program: Path = PROGRAM) -> Path:
    """Build a program as it is, as a user does; returns the binary."""
    source, binary = folder / "with-ours", folder / "ours"
    source.mkdir()
    shutil.copyfile(program / "main.go", source / "main.go")
    prepared = wallaroo("build", "--init", source, seconds=600)
    assert prepared.returncode == 0, prepared.stderr
    subprocess.run(["go", "build", "-o", binary, "."], cwd=source, check=True, timeout=600)
    return binary


def build_own(folder: Path, program: Path = PROGRAM) -> Path:
    """Build a program with the import paths of Goka, of the version that our module requires; returns the binary.

    Lines that end with `// ours` are left out.
    """
    source, binary = folder / "own", folder / "goka"
    source.mkdir()
    text = (program / "main.go").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^.*// ours\n", "", text)
    (source / "main.go").write_text(text.replace(f'"{OURS}', f'"{GOKA}'), encoding="utf-8")
    module = (GOKA_MODULE / "go.mod").read_text(encoding="utf-8")
    module = re.sub(r"(?m)^module .*$", "module wallaroo.local/own", module)
    module = re.sub(r"(?m)^(replace .*|\s*wallarooapi v.*)\n", "", module)
    (source / "go.mod").write_text(module, encoding="utf-8")
    shutil.copyfile(GOKA_MODULE / "go.sum", source / "go.sum")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    subprocess.run(["go", "build", "-o", binary, "."], cwd=source, env=environment, check=True, timeout=600)
    return binary


class Processor:
    """The program as a process that may be killed and started again.

    Args:
        binary: Of `build_ours` or `build_own`.
        directory: For its output and its state.
        broker: Where its topics are.
        topic: That it reads.
        group: That it is; the table has its name.
        more: Variables of its environment.
    """

    READY = "READY\n"

    def __init__(self, binary: Path, directory: Path, broker: Broker, topic: str, group: str, **more: str) -> None:
        directory.mkdir()
        # Goka's own state is in a directory that all runs share.
        self.binary, self.directory, self.group = binary, directory, f"{group}-{secrets.token_hex(4)}"
        own = {"BROKERS": broker.address, "TOPIC": topic, "GROUP": self.group, "WALLAROO": str(WALLAROO), **more}
        self.environment = {**os.environ, **own, "XDG_STATE_HOME": str(directory / "state"), "TMPDIR": str(directory)}
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str | Path]:
        """Return what starts it."""
        return [self.binary]

    def start(self) -> None:
        """Start it and wait until it processes."""
        known = self.output().count(self.READY)
        with (self.directory / "output").open("ab") as output:
            self.process = subprocess.Popen(
                self.command(), stdout=output, stderr=output, env=self.environment, start_new_session=True
            )
        wait_until(lambda: self.output().count(self.READY) > known or not self.is_alive(), self.output, START_S)
        assert self.is_alive(), self.output()[-2000:]

    def is_alive(self) -> bool:
        """Whether the program runs."""
        return self.process is not None and self.process.poll() is None

    def output(self) -> str:
        """Return what it has printed."""
        path = self.directory / "output"
        return path.read_text(errors="replace") if path.exists() else ""

    def parts(self) -> Mapping[str, int]:
        """Return the processes that a kill may hit, by what they are."""
        found = {"program": self.process.pid} if self.process is not None and self.is_alive() else {}
        names = {
            "driver": r"wallaroo run .*--attach",
            "JVM": r"java .*SparkSubmit",
            "egress": r"wallaroo_runtime\.egress",
            "worker": r"wallaroo\.worker",
        }
        for entry in Path("/proc").iterdir():
            command = (
                _command_of(entry) if entry.name.isdigit() and str(self.directory) in _environment_of(entry) else ""
            )
            found |= {name: int(entry.name) for name, pattern in names.items() if re.search(pattern, command)}
        return found

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the program by a signal, and wait until all that it started has ended."""
        if self.process is not None and self.is_alive():
            self.process.send_signal(number)
            self.process.wait(120)
        wait_until(lambda: not self.parts(), lambda: f"the end of {dict(self.parts())}", 120)


class InPython(Processor):
    """A group in Python, which `wallaroo run` runs: the program is the driver, workers are other processes."""

    READY = READY + "\n"

    def command(self) -> list[str | Path]:
        """Return what starts it."""
        said = [self.environment[name] for name in ("BROKERS", "TOPIC", "GROUP")]
        return [WALLAROO, "run", self.binary, *said, "--checkpoint", self.directory / "checkpoint"]


def _command_of(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""  # it has ended


def _environment_of(entry: Path) -> str:
    try:
        return (entry / "environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def click(broker: Broker, topic: str, count: int, keys: int, first: int = 0) -> None:
    """Write records of keys in turn, with the partitioner of Goka."""
    settings = {"bootstrap.servers": broker.address, "partitioner": "fnv1a", "queue.buffering.max.messages": 10_000_000}
    producer = Producer({**settings, "linger.ms": 5})
    for number in range(first, first + count):
        producer.produce(topic, b"click", key=b"user-%d" % (number % keys))
    assert producer.flush(120) == 0


class Table:
    """The table of a group, as a reader of committed records sees it: the last value of each key."""

    def __init__(self, broker: Broker, group: str) -> None:
        settings = {"bootstrap.servers": broker.address, "group.id": f"look-{time.time_ns()}"}
        self._consumer = Consumer(
            {**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed", "fetch.wait.max.ms": 5}
        )
        self._consumer.subscribe([f"{group}-table"])
        self.counts: dict[bytes, int] = {}

    def look(self, seconds: float) -> int:
        """Take what came; returns how many updates."""
        records = [record for record in self._consumer.consume(10_000, seconds) if record.error() is None]
        self.counts.update((record.key(), int(record.value())) for record in records)
        return len(records)

    def read_until(
        self, holds: Callable[[dict[bytes, int]], bool], seconds: float = READ_S, look_s: float = 0.02
    ) -> None:
        """Read until the table is as it should be; `look_s`: how exactly that is to be known."""
        deadline = time.monotonic() + seconds
        while not holds(self.counts):
            assert time.monotonic() < deadline, f"the table sums up to {sum(self.counts.values())}"
            self.look(look_s)

    def settle(self, seconds: float, total: int) -> dict[bytes, int]:
        """Read until the sum is at least `total` and nothing came for a while; returns the table."""
        quiet, deadline = time.monotonic(), time.monotonic() + READ_S
        while time.monotonic() < deadline and (time.monotonic() - quiet < seconds or sum(self.counts.values()) < total):
            if self.look(0.2):
                quiet = time.monotonic()
        return self.counts

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
