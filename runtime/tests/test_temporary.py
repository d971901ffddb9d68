"""Directories for what Spark writes for a while: private, locked while they are used, removed after a kill."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.spark.machine.temporary import take

PROGRAM = """
import os, sys
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.temporary import temporary_directory

try:
    directory = temporary_directory()
except RunError as error:
    sys.exit(str(error).splitlines()[0])
(directory / "blockmgr-1").mkdir()
(directory / "blockmgr-1" / "message").write_bytes(b"secret")
print(directory, flush=True)
sys.stdin.readline()
"""


class Holder:
    """A process that has a directory."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "TMPDIR": str(folder)}
        command = [sys.executable, "-c", PROGRAM]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
        assert self.process.stdout
        self.directory = Path(self.process.stdout.readline().strip() or "none")

    def end(self, killed: bool = False) -> str:
        """Let it end, or kill it; return what it said was wrong."""
        if killed:
            self.process.send_signal(signal.SIGKILL)
        return self.process.communicate("\n", timeout=300)[1].strip()


@contextmanager
def short_folder() -> Iterator[Path]:
    """Give a directory for temporary files whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        yield Path(folder)


@pytest.fixture
def short() -> Iterator[Path]:
    """Give such a directory to a test."""
    with short_folder() as folder:
        yield folder


@pytest.mark.slow
def test_killed_run_leaves_nothing_after_the_next_start(short: Path) -> None:
    live, dead = Holder(short), Holder(short)
    assert dead.directory.is_dir()
    assert dead.directory.stat().st_mode & 0o777 == 0o700
    assert dead.directory.parent == short / f"wallaroo-{os.getuid()}"
    dead.end(killed=True)
    assert dead.directory.is_dir(), "nobody could remove it"
    following = Holder(short)
    assert not dead.directory.exists()
    assert (live.directory / "blockmgr-1" / "message").read_bytes() == b"secret", "the other run still lives"
    assert following.end() == live.end() == ""
    assert not following.directory.exists(), "who ends removes its own"
    assert not live.directory.exists()


@pytest.mark.slow
def test_directory_of_another_kind_is_refused(short: Path) -> None:
    root, target = short / f"wallaroo-{os.getuid()}", short / "target"
    target.mkdir(mode=0o700)
    root.symlink_to(target)
    said = f"R712 {root} cannot hold Spark's temporary files; "
    assert Holder(short).end() == said + "it is no directory"
    root.unlink()
    root.mkdir()
    root.chmod(0o755)
    assert Holder(short).end() == said + "others may enter it, its mode is 755"
    root.rmdir()
    root.mkdir(mode=0o700)
    if os.getuid() == 0:
        os.chown(root, 12345, -1)
        assert Holder(short).end() == said + "it belongs to the user with number 12345"
    assert not any(target.iterdir())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), max_size=6))
def test_exactly_the_directories_of_the_dead_are_removed(are_dead: list[bool]) -> None:
    with short_folder() as folder:
        taken = [take(folder) for _ in are_dead]
        for (_, lock), is_dead in zip(taken, are_dead, strict=True):
            if is_dead:
                os.close(lock)
        last = take(folder)
        assert [not directory.exists() for directory, _ in taken] == are_dead
        assert last[0].is_dir()
        for (_, lock), is_dead in zip((*taken, last), (*are_dead, False), strict=True):
            if not is_dead:
                os.close(lock)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "mode"), [("run", 0o600), ("gateway", 0o600), ("pack", 0o644)])
def test_what_runs_keeps_its_files_to_itself(command: str, mode: int, tmp_path: Path) -> None:
    code = "import os, sys; from wallaroo_runtime.cli.start import main; main(); open(sys.argv[2], 'w').close()"
    made = tmp_path / "made"
    subprocess.run(
        [sys.executable, "-c", code, command, str(made)], capture_output=True, timeout=300, check=True, umask=0o022
    )
    assert made.stat().st_mode & 0o777 == mode
