"""Gateways and an egress as processes of their own, and drivers that see nothing of their directories."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from support.life import free_port
from support.run import START_S, WALLAROO, Receiver, Run, framed, wait_until
from wallaroo_runtime.service.credential import TOKEN_FILE

HIDING = 'mount -t tmpfs none "$0" && exec "$@"'
TEXTS = [f"message number{i % 7} of{i % 1000} many" for i in range(20_000)]  # for a word count
PARTS = [TEXTS[at : at + 4_000] for at in range(0, len(TEXTS), 4_000)]
LONG_S = 600.0


@dataclass
class Service:
    """`wallaroo gateway` or `wallaroo egress`, which may be killed and started again at its address.

    Attributes:
        entry: Goes before its command.
        options: Follow it.
    """

    kind: str
    directory: Path
    token_file: Path
    address: str = "127.0.0.1:0"
    process: subprocess.Popen[str] | None = None
    lines: list[str] = field(default_factory=list)
    entry: tuple[object, ...] = ()
    options: tuple[object, ...] = ()

    def start(self) -> "Service":
        """Start it and wait until it says where it serves."""
        self.launch()
        self.wait_served()
        return self

    def launch(self) -> None:
        """Start it."""
        data = "--journal" if self.kind == "gateway" else "--outbox"
        where = (data, self.directory, "--listen", self.address, "--token-file", self.token_file)
        command = [*self.entry, WALLAROO, self.kind, *where, *self.options, "--json"]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        self.lines.clear()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_served(self) -> None:
        """Wait until it says where it serves."""
        wait_until(lambda: bool(self.lines), lambda: f"the {self.kind} to serve", START_S)
        self.address = json.loads(self.lines[0])["address"]

    def _read(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        with self.process.stdout as output:
            self.lines.extend(output)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it with a signal."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=300)


def start_all(*services: Service) -> None:
    """Start services at the same time, and wait until all serve."""
    for service in services:
        service.launch()
    for service in services:
        service.wait_served()


def token_setting(token_file: Path) -> tuple[str, str]:
    """Return the setting of a run whose services have this token."""
    return "--conf", f"{TOKEN_FILE}={token_file}"


class Site:
    """The machines of a run: one for the services, and one after the other for the driver.

    Args:
        folder: Empty.
        sources: What has a gateway of its own: names of sources, or empty for all others.
    """

    def __init__(self, folder: Path, *sources: str) -> None:
        self.folder, self.hidden = folder, folder / "hidden"
        self.hidden.mkdir()
        self.token_file = folder / "token"
        self.token_file.write_text("0123456789abcdef0123456789abcdef")
        self.token_file.chmod(0o600)
        self.gateways = {
            name: Service("gateway", self.hidden / f"gateway-{number}", self.token_file)
            for number, name in enumerate(sources)
        }
        self.egress = Service("egress", self.hidden / "egress", self.token_file)
        self.source = ",".join(f"127.0.0.1:{free_port(number)}" for number in range(len(sources)))
        self.drivers = 0

    def options(self) -> tuple[object, ...]:
        """Return the options of `run` that name the services."""
        named = [(f"{name}=" if name else "") + gateway.address for name, gateway in self.gateways.items()]
        gateways = [option for text in named for option in ("--gateway", text)]
        return (*gateways, "--egress", self.egress.address, *token_setting(self.token_file))

    def services(self) -> list[Service]:
        """Return all services."""
        return [*self.gateways.values(), self.egress]

    def run(self, app: Path, receiver: Receiver, *options: object, checkpoint: str = "", **environment: str) -> Run:
        """Run on a machine that has never seen the application.

        Args:
            app: What is run.
            receiver: Of its sink.
            options: Further ones.
            checkpoint: URL; empty: a directory that all machines see.
            environment: Further variables.
        """
        self.drivers += 1
        home = self.folder / f"driver-{self.drivers}"
        home.mkdir()
        return Run(
            app, receiver, checkpoint or f"file://{self.folder}/checkpoint", *self.options(), *options,
            source=self.source,
            prefix=("unshare", "--map-root-user", "--mount", "sh", "-c", HIDING, self.hidden),
            XDG_STATE_HOME=str(home), **environment,
        ).ready()  # fmt: skip


def counted(texts: list[str]) -> list[str]:
    """Return the lines of a word count, in order, counted here."""
    seen: Counter[str] = Counter()
    lines = []
    for word in (word for text in texts for word in text.split(" ")):
        seen[word] += 1
        lines.append(f"{word} => {seen[word]}")
    return lines


def payload(texts: list[str]) -> bytes:
    """Return messages as a source reads them."""
    return framed(text.encode() for text in texts)


def ended(run: Run) -> int:
    """Wait for the end of a run that ends by itself."""
    wait_until(lambda: run.process.poll() is not None, lambda: f"the end of the run:\n{run.said()}", LONG_S, every=0.2)
    return run.end()


def kill(run: Run) -> None:
    """Kill a driver; the Java virtual machine that it has started ends with it."""
    os.killpg(run.process.pid, signal.SIGKILL)
    run.process.wait(timeout=300)


@contextlib.contextmanager
def running(made: Site) -> Iterator[Site]:
    """Run the services until the block ends."""
    try:
        start_all(*made.services())
        yield made
    finally:
        for service in made.services():
            with contextlib.suppress(ProcessLookupError):
                service.end(signal.SIGKILL)
