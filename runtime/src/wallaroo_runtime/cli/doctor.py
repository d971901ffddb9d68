"""`wallaroo doctor`: look whether this machine has what runs of applications need.

The exit code is 1 when something is missing that every run needs; what only some runs need is a warning.
"""

import argparse
import os
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.directory import state_directory
from wallaroo_runtime.cli.stamp import print_json
from wallaroo_runtime.errors import RUN, RunError
from wallaroo_runtime.program.sdk import go_command
from wallaroo_runtime.spark.java import check_java
from wallaroo_runtime.system.cache import cache_directory

NEEDED_BYTES = 2 << 30  # a JVM, its Python daemons and a worker
FREE_DISK_BYTES = 1 << 30
OPEN_FILES = 1024
PROCESSES = 512
GIB = 1 << 30
LIMITS = (
    ("open files", resource.RLIMIT_NOFILE, OPEN_FILES, "-n"),
    ("processes", resource.RLIMIT_NPROC, PROCESSES, "-u"),
)
CGROUP = Path("/sys/fs/cgroup/memory.max")


class Outcome(NamedTuple):
    """What one look has found.

    Attributes:
        finding: What is wrong with it.
        needed: Whether no run works without it.
    """

    what: str
    text: str = ""
    finding: Diagnostic | None = None
    needed: bool = True

    @property
    def state(self) -> str:
        """Return `ok`, `warning` or `missing`."""
        if self.finding is None:
            return "ok"
        return "missing" if self.needed else "warning"

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        finding = {"finding": self.finding.to_json()} if self.finding else {}
        return {"what": self.what, "state": self.state, "text": self.text, **finding}


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("doctor", help="look whether this machine has what is needed", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each look")


def run(arguments: argparse.Namespace) -> int:
    """Look at everything, and print what was found."""
    outcomes = [outcome for look in LOOKS for outcome in look()]
    for outcome in outcomes:
        if arguments.json:
            print_json(outcome.to_json())
        elif outcome.finding is None:
            print(f"ok       {outcome.what}: {outcome.text}")
        else:
            print(f"{outcome.state:<8} {str(outcome.finding).replace(chr(10), chr(10) + ' ' * 7)}")
    return RUN if any(outcome.state == "missing" for outcome in outcomes) else 0


def java() -> list[Outcome]:
    """Look for the Java that Spark uses."""
    try:
        return [Outcome("Java", f"version {check_java()}")]
    except RunError as error:
        return [Outcome("Java", finding=error.diagnostics[0])]


def go() -> list[Outcome]:
    """Look for the go command."""
    try:
        program, found = go_command()
        return [Outcome("Go", f"{found} at {program}")]
    except RunError as error:
        return [Outcome("Go", finding=error.diagnostics[0], needed=False)]


def pyspark() -> list[Outcome]:
    """Look for PySpark."""
    try:
        return [Outcome("PySpark", f"version {version('pyspark')}, Python {sys.version.split()[0]}")]
    except PackageNotFoundError:
        return [_lacks("PySpark", "it is not installed", f"{sys.executable} -m pip install 'pyspark>=4.2,<4.4'")]


def memory() -> list[Outcome]:
    """Look at the memory that is available, of the machine and of the container."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    free = int(fields["MemAvailable"].split()[0]) << 10
    limit = CGROUP.read_text(encoding="ascii").strip() if CGROUP.is_file() else "max"
    usable = min(free, int(limit)) if limit.isdigit() else free
    text = f"{usable / GIB:.1f} GiB available"
    if usable >= NEEDED_BYTES:
        return [Outcome("memory", text)]
    fix = f"end other programs, or give the container {NEEDED_BYTES // GIB} GiB; --engine memory needs less"
    return [_lacks("memory", f"{text}; a run on Spark needs about {NEEDED_BYTES // GIB} GiB", fix, needed=False)]


def limits() -> list[Outcome]:
    """Look at the limits of the shell that the user has started this in."""
    outcomes = []
    for what, number, least, letter in LIMITS:
        soft, hard = resource.getrlimit(number)
        text = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
        if soft == resource.RLIM_INFINITY or soft >= least:
            outcomes.append(Outcome(what, f"limit {text}"))
            continue
        raised = hard == resource.RLIM_INFINITY or hard >= least
        fix = f"ulimit {letter} {least}" + ("" if raised else ", which an administrator has to allow")
        outcomes.append(_lacks(what, f"the limit is {text}; at least {least} are good", fix, needed=False))
    return outcomes


def ports() -> list[Outcome]:
    """Look whether a server can listen on this machine."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return [Outcome("ports", f"127.0.0.1:{server.getsockname()[1]} could be listened at")]
    except OSError as error:
        reason = f"no server can listen at 127.0.0.1; {error.strerror or error}"
        return [_lacks("ports", reason, "bring the loopback interface up: `ip link set lo up`")]


def directories() -> list[Outcome]:
    """Look at the directories that runs write to."""
    places = {
        "checkpoints": (state_directory(), "XDG_STATE_HOME"),
        "caches": (cache_directory(), "XDG_CACHE_HOME"),
        "temporary files": (Path(tempfile.gettempdir()), "TMPDIR"),
    }
    return [_directory(what, path, variable) for what, (path, variable) in places.items()]


def _directory(what: str, path: Path, variable: str) -> Outcome:
    there = next(each for each in (path, *path.parents) if each.exists())
    fix = f"give another directory with {variable}"
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return _lacks(what, f"{there} cannot be written to", fix)
    free = shutil.disk_usage(there).free
    text = f"{path}, {free / GIB:.1f} GiB free"
    if free < FREE_DISK_BYTES:
        return _lacks(what, f"{text}; runs write until the disk is full", f"free some space, or {fix}", needed=False)
    return Outcome(what, text)


def _lacks(what: str, reason: str, fix: str, *, needed: bool = True) -> Outcome:
    return Outcome(what, finding=Diagnostic.of("R742", what=what, reason=reason, fix=fix), needed=needed)


LOOKS: tuple[Callable[[], list[Outcome]], ...] = (java, pyspark, go, memory, limits, ports, directories)
