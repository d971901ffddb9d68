"""Runs an application on disks that get full: `test_full_disk.py` starts it where it may mount a file system.

Each part of a checkpoint is put on a small tmpfs of its own, which a large file fills and leaves again. What the
receiver gets over all runs must be exact.
"""

import argparse
import contextlib
import errno
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.ledger import Ledger
from support.remote import Site, running
from support.run import TESTS, WAIT_S, Run, framed

APP = TESTS / "recovery" / "sequence" / "app.py"
WORDS, SOME = 50, 1_000
DISK_BYTES, BLOCK_BYTES = 16 << 20, 4096
NO_ROOM = "No space left on device"
AGAIN = "free some space, and repeat it; a run continues from its checkpoint, and nothing that was acknowledged is lost"


class Disk:
    """A small file system.

    Args:
        path: Where it is mounted; made.
    """

    def __init__(self, path: Path, size: int = DISK_BYTES) -> None:
        self.path = path
        self._ballast = path / "ballast"
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=True)

    def take(self, checkpoint: Path, names: Sequence[str]) -> None:
        """Move directories of a checkpoint here, and mount them where they were: a checkpoint has no links.

        Several are moved with the checkpoint itself, as files are linked between them; the rest is mounted back.
        """
        if len(names) == 1:
            subprocess.run(["cp", "-a", checkpoint / names[0], self.path], check=True)
            subprocess.run(["mount", "--bind", self.path / names[0], checkpoint / names[0]], check=True)
            return
        old = checkpoint.with_name("old")
        checkpoint.rename(old)
        checkpoint.mkdir(mode=0o700)
        subprocess.run(["cp", "-a", f"{old}/.", self.path], check=True)
        self.path.chmod(0o700)
        subprocess.run(["mount", "--bind", self.path, checkpoint], check=True)
        for folder in old.iterdir():
            if folder.is_dir() and folder.name not in names:
                subprocess.run(["mount", "--bind", folder, checkpoint / folder.name], check=True)

    def fill(self) -> None:
        """Leave no room."""
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(BLOCK_BYTES))
        try:
            (self.path / "more").write_bytes(b"more")
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
        else:
            msg = f"{self.path} has room"
            raise AssertionError(msg)

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink()
        (self.path / "more").unlink(missing_ok=True)


class Sender:
    """Sends what the sequence checker counts."""

    def __init__(self) -> None:
        self.sent = 0

    def send(self, run: Run, count: int = SOME) -> None:
        """Send some messages and wait until the journal has them."""
        numbers = range(self.sent, self.sent + count)
        self.sent += count
        run.send(framed(f"w{number % WORDS}:{number // WORDS + 1}".encode() for number in numbers))


@contextlib.contextmanager
def prepared(folder: Path, names: Sequence[str]) -> Iterator[tuple[Disk, Path, Ledger, Sender]]:
    """Give a checkpoint that has done some work, parts of it on a disk of their own."""
    ledger, sender, checkpoint = Ledger(), Sender(), folder / "checkpoint"
    try:
        with Run(APP, ledger, checkpoint) as run:
            sender.send(run.ready())
            receive(run, ledger, sender)
            assert run.stop() == 0, run.said()
        disk = Disk(folder / "disk")
        disk.take(checkpoint, names)
        yield disk, checkpoint, ledger, sender
    finally:
        ledger.close()


def receive(run: Run, ledger: Ledger, sender: Sender) -> None:
    """Wait until everything sent has come back, once and in order."""
    run.wait_while_alive(
        lambda: ledger.lines >= sender.sent or ledger.differences > 0,
        lambda: f"{sender.sent} lines, have {ledger.lines}",
    )
    assert not ledger.differences, ledger.first


def continues(checkpoint: Path, ledger: Ledger, sender: Sender) -> None:
    """Run once more, with room: what was kept is processed, and what comes now."""
    with Run(APP, ledger, checkpoint) as run:
        run.ready()
        receive(run, ledger, sender)
        sender.send(run)
        receive(run, ledger, sender)
        assert run.stop() == 0, run.said()


def journal(folder: Path) -> None:
    """The gateway stops reading and says so; when there is room again it goes on by itself."""
    with prepared(folder, ["journal"]) as (disk, checkpoint, ledger, sender), Run(APP, ledger, checkpoint) as run:
        pauses(disk, run.ready(), ledger, sender)


def pauses(disk: Disk, run: Run, ledger: Ledger, sender: Sender) -> None:
    """Fill the disk of a journal, send, and give the room back."""
    disk.fill()
    thread = threading.Thread(target=sender.send, args=(run, 40 * SOME), daemon=True)
    thread.start()
    run.wait_while_alive(lambda: "R614" in "".join(run.errors), lambda: "R614")
    assert thread.is_alive(), "what is not in the journal was acknowledged"
    disk.free()
    thread.join(WAIT_S)
    receive(run, ledger, sender)
    assert run.stop() == 0, run.said()


def whole(folder: Path, *options: str) -> None:
    """No file takes a report: terminal and `status` have it all the same, and a stop reports how much is lost.

    The next start says it, too, and that of a disk which is read-only. The home directory is, and shared memory is
    small, all the time.
    """
    disk, sender = Disk(folder / "checkpoint", 4 * DISK_BYTES), Sender()
    checkpoint = disk.path / "of the run"
    environment = {"HOME": str(_hardened(folder)), "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""}
    with contextlib.closing(Ledger()) as ledger:
        with Run(APP, ledger, checkpoint, *options, **environment) as run:
            sender.send(run.ready())
            receive(run, ledger, sender)
            disk.fill()
            thread = threading.Thread(target=_send_in_vain, args=(sender, run), daemon=True)
            thread.start()
            run.wait_while_alive(lambda: "R614" in "".join(run.errors), lambda: "R614")
            command = [sys.executable, "-m", "wallaroo_runtime.cli.start", "status", str(checkpoint)]
            assert "R614" in subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
            assert run.stop() == 1, run.said()
            assert '"R800"' in "".join(run.errors), run.said()
            thread.join(WAIT_S)
        with Run(APP, ledger, checkpoint, *options, **environment) as run:
            told(run, "R626")
        ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
        assert "R626" in ended and "killed" not in ended, ended
        subprocess.run(["mount", "-o", "remount,ro", disk.path], check=True)
        with Run(APP, ledger, checkpoint, *options, **environment) as run:
            told(run, "R626", "Read-only file system", "mount it for writing")


def _hardened(folder: Path) -> Path:
    """Return a home directory of a machine that allows little: it is read-only, and shared memory small."""
    home = folder / "home"
    home.mkdir()
    for path, option in (home, "ro"), (Path("/dev/shm"), "size=1m"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", path], check=True)
    return home


def realtime(folder: Path) -> None:
    """The same in real-time mode."""
    whole(folder, "--mode", "realtime")


def _send_in_vain(sender: Sender, run: Run) -> None:
    with contextlib.suppress(ConnectionError):
        sender.send(run, 40 * SOME)


def told(run: Run, code: str, reason: str = NO_ROOM, fix: str = AGAIN) -> None:
    """Wait for the end of a run, with a code and its remedy."""
    assert run.end(WAIT_S) in (1, 2), run.said()
    said = "".join(run.errors)
    assert f'"{code}"' in said, said
    assert reason in said, said
    assert fix in said, said
    assert "Traceback" not in said, said


def stops(folder: Path, names: Sequence[str], code: str) -> None:
    """The run ends with a code and its remedy; the next one continues."""
    with prepared(folder, names) as (disk, checkpoint, ledger, sender):
        with Run(APP, ledger, checkpoint) as run:
            run.ready()
            disk.fill()
            sender.send(run)
            told(run, code)
        disk.free()
        continues(checkpoint, ledger, sender)


def output(folder: Path) -> None:
    """Staging, outbox and dead letters."""
    stops(folder, ["staging", "outbox", "dead-letters"], "R626")


def spark(folder: Path) -> None:
    """Spark's own checkpoint: offsets, commits and the state store."""
    stops(folder, ["spark"], "R626")


@contextlib.contextmanager
def elsewhere(folder: Path, name: str) -> Iterator[tuple[Disk, Site, Ledger, Sender]]:
    """Give a gateway and an egress of their own, one of them with everything that it writes on a small disk."""
    site, ledger = Site(folder, ""), Ledger()
    try:
        disk = Disk(site.hidden / name)
        with running(site):
            yield disk, site, ledger, Sender()
    finally:
        ledger.close()


def run_at(site: Site, ledger: Ledger) -> Run:
    """Run the application with the services of a site."""
    return Run(APP, ledger, site.folder / "checkpoint", *site.options(), source=site.source).ready()


def gateway(folder: Path) -> None:
    """A remote one reports to its driver, although its own status file finds no room either, and goes on by itself."""
    with elsewhere(folder, "gateway-0") as (disk, site, ledger, sender), run_at(site, ledger) as run:
        sender.send(run)
        receive(run, ledger, sender)
        pauses(disk, run, ledger, sender)


def egress(folder: Path) -> None:
    """The run ends when its remote egress has no room; a driver then gets an error; the next one continues."""
    with elsewhere(folder, "egress") as (disk, site, ledger, sender):
        with run_at(site, ledger) as run:
            sender.send(run)
            receive(run, ledger, sender)
            disk.fill()
            sender.send(run)
            told(run, "R626")
        refused = Run(APP, ledger, site.folder / "checkpoint", *site.options(), source=site.source)
        with refused:
            told(refused, "R626")
        disk.free()
        with run_at(site, ledger) as run:
            receive(run, ledger, sender)
            sender.send(run)
            receive(run, ledger, sender)
            assert run.stop() == 0, run.said()


SCENARIOS = {
    "journal": journal,
    "whole": whole,
    "realtime": realtime,
    "output": output,
    "spark": spark,
    "gateway": gateway,
    "egress": egress,
}


def unmount(folder: Path) -> None:
    """Take away what a scenario has mounted."""
    for disk in (
        *folder.glob("checkpoint/*"),
        folder / "checkpoint",
        folder / "disk",
        folder / "home",
        *folder.glob("hidden/*"),
    ):
        if disk.is_mount():
            subprocess.run(["umount", "--lazy", disk], check=True)


def main() -> int:
    """Run one scenario; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wallaroo-disk-") as folder:
        try:
            SCENARIOS[options.scenario](Path(folder))
        finally:
            unmount(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
