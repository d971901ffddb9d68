"""Runs whose gateway and egress are processes of their own, in directories that driver and tasks do not see.

The driver runs in a mount namespace in which an empty file system covers those directories.
"""

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

import pytest

from case import Case
from life import free_port
from run import START_S, WALLAROO, Receiver, Run, framed, wait_until, wallaroo

pytestmark = [pytest.mark.jvm, pytest.mark.slow]
CASE = Case("word_count")
HIDING = 'mount -t tmpfs none "$0" && exec "$@"'


@dataclass
class Service:
    """`wallaroo gateway` or `wallaroo egress`, which may be killed and started again at its address."""

    kind: str
    directory: Path
    token_file: Path
    address: str = "127.0.0.1:0"
    process: subprocess.Popen[str] | None = None
    lines: list[str] = field(default_factory=list)

    def start(self) -> "Service":
        """Start it and wait until it says where it serves."""
        data = "--journal" if self.kind == "gateway" else "--outbox"
        command = [WALLAROO, self.kind, data, self.directory, "--listen", self.address, "--token-file", self.token_file]
        self.process = subprocess.Popen([*map(str, command), "--json"], stdout=subprocess.PIPE, text=True)
        self.lines.clear()
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: bool(self.lines), lambda: f"the {self.kind} to serve", START_S)
        self.address = json.loads(self.lines[0])["address"]
        return self

    def _read(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        with self.process.stdout as output:
            self.lines.extend(output)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it with a signal."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=60)


class Site:
    """The machines of a run: one for the services, and one after the other for the driver."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hidden = folder, folder / "hidden"
        self.hidden.mkdir()
        self.token_file = folder / "token"
        self.token_file.write_text("0123456789abcdef0123456789abcdef")
        self.token_file.chmod(0o600)
        self.gateway = Service("gateway", self.hidden / "gateway", self.token_file)
        self.egress = Service("egress", self.hidden / "egress", self.token_file)
        self.source = f"127.0.0.1:{free_port(0)}"
        self.drivers = 0

    def options(self) -> tuple[object, ...]:
        """Return the options of `run` that name the services."""
        return (
            "--gateway", self.gateway.address, "--egress", self.egress.address, "--token-file", self.token_file,
        )  # fmt: skip

    def run(self, app: Path, receiver: Receiver, *options: object) -> Run:
        """Run on a machine that has never seen the application."""
        self.drivers += 1
        home = self.folder / f"driver-{self.drivers}"
        home.mkdir()
        return Run(
            app, receiver, f"file://{self.folder}/checkpoint", *self.options(), *options, source=self.source,
            prefix=("unshare", "--map-root-user", "--mount", "sh", "-c", HIDING, self.hidden),
            XDG_STATE_HOME=str(home),
        ).ready()  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Give services that run until the test ends."""
    made = Site(tmp_path)
    try:
        made.gateway.start()
        made.egress.start()
        yield made
    finally:
        for service in (made.gateway, made.egress):
            with contextlib.suppress(ProcessLookupError):
                service.end(signal.SIGKILL)


def counted(texts: list[str]) -> list[str]:
    """Return the lines of a word count, in order, counted here."""
    seen: Counter[str] = Counter()
    lines = []
    for word in (word for text in texts for word in text.split(" ")):
        seen[word] += 1
        lines.append(f"{word} => {seen[word]}")
    return lines


def kill(run: Run) -> None:
    """Kill a driver with all that it has started."""
    os.killpg(run.process.pid, signal.SIGKILL)
    run.process.wait(timeout=60)


@pytest.mark.parametrize("language", ["python", "go"])
def test_a_driver_killed_and_started_elsewhere_goes_on(site: Site, language: str) -> None:
    app = CASE.app(language)
    texts = [f"message number{i % 7} of{i % 1000} many" for i in range(20_000)]
    parts = [texts[at : at + 5000] for at in range(0, len(texts), 5000)]
    with Receiver() as receiver:
        with site.run(app, receiver) as first:
            first.send(framed(text.encode() for text in parts[0]))
            receiver.wait_for_lines(4 * 5000, first)
            assert first.last("bytes_by_file") == 0
            first.send(framed(text.encode() for text in parts[1]))
            kill(first)
        site.gateway.end(signal.SIGKILL)
        site.gateway.start()
        with site.run(app, receiver) as second:
            assert f"continuing from file://{site.folder}/checkpoint" in "".join(second.errors)
            second.send(framed(text.encode() for text in parts[2]))
            site.egress.end(signal.SIGKILL)
            second.send(framed(text.encode() for text in parts[3]))
            site.egress.start()
            lines = receiver.wait_for_lines(4 * len(texts), second)
            second.wait_for("bytes_by_grpc", 1)
            assert second.last("bytes_by_file") == 0
            assert second.stop() == 0, second.said()
        assert sorted(lines) == sorted(counted(texts))


def test_another_journal_is_refused(site: Site, tmp_path: Path) -> None:
    app, checkpoint = CASE.app("python"), tmp_path / "checkpoint"
    with Receiver() as receiver, Run(app, receiver, checkpoint, *site.options(), source=site.source) as run:
        # What the checkpoint refers to is recorded before anything of Spark's is started.
        run.wait_while_alive(lambda: recorded(checkpoint), lambda: "the ids of journal and outbox")
        kill(run)
    refused = ("run", app, "--in", site.source, "--out", "127.0.0.1:9", "--master", "local[2]")
    other = Service("gateway", site.hidden / "other", site.token_file).start()
    try:
        for gateway, said in ((other.address, "R643 checkpoint "), ("127.0.0.1:9", "R642 the gateway at 127.0.0.1:9 ")):
            done = wallaroo(
                *refused, "--checkpoint", checkpoint, "--gateway", gateway, "--egress", site.egress.address,
                "--token-file", site.token_file,
            )  # fmt: skip
            assert done.returncode == 1, done.stderr
            assert said in done.stderr
    finally:
        other.end()
    done = wallaroo(*refused, "--checkpoint", checkpoint)
    assert f"R650 checkpoint {checkpoint} was begun with egress elsewhere and gateway elsewhere" in done.stderr
    done = wallaroo(*refused, "--checkpoint", f"file://{checkpoint}")
    assert "R608 --checkpoint file://" in done.stderr


def recorded(checkpoint: Path) -> bool:
    """Say whether a checkpoint refers to a journal and an outbox."""
    try:
        services = json.loads((checkpoint / "application.json").read_bytes())["services"]
    except FileNotFoundError:
        return False
    return all(services.values())
