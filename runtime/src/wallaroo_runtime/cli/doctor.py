"""`wallaroo doctor`: check whether this machine has everything that runs of applications need.

The exit code is 1 if something is missing that every run needs. A part that only some runs need causes a warning.
"""

import argparse
import socket
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.registry import state_directory
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.errors import RUN, RunError
from wallaroo_runtime.program.sdk import go_command
from wallaroo_runtime.spark.machine import check
from wallaroo_runtime.spark.machine.check import GIB, MachineFinding, caches, directory, lacks, limits, temporary_files
from wallaroo_runtime.spark.machine.jar import operator_jar
from wallaroo_runtime.spark.machine.java import check_java

NEEDED_BYTES = 2 << 30  # a JVM and a worker
CGROUP = Path("/sys/fs/cgroup/memory.max")
FORGETTING = 2, 11  # the first version of confluent-kafka whose clients may forget all brokers of a cluster


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("doctor", help="look whether this machine lacks anything", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each look")


def run(arguments: argparse.Namespace) -> int:
    """Make all checks of the machine, and print the findings."""
    outcomes = [outcome for look in LOOKS for outcome in look()]
    for outcome in outcomes:
        if arguments.json:
            finding = {"finding": outcome.finding.to_json()} if outcome.finding else {}
            print_json({"what": outcome.what, "state": outcome.state, "text": outcome.text, **finding})
        elif outcome.finding is None:
            print(f"ok       {outcome.what}: {outcome.text}")
        else:
            print(f"{outcome.state:<8} {str(outcome.finding).replace(chr(10), chr(10) + ' ' * 7)}")
    return RUN if any(outcome.state == "missing" for outcome in outcomes) else 0


def java() -> list[MachineFinding]:
    """Check that there is a Java that Spark can use."""
    return _tried("Java", lambda: f"version {check_java()}")


def java_classes() -> list[MachineFinding]:
    """Check that there is the jar of the runtime's own Java, which a checkout has to build."""
    return _tried("Java classes", lambda: str(operator_jar()))


def go() -> list[MachineFinding]:
    """Check that there is the go command."""
    return _tried("Go", lambda: "{1} at {0}".format(*go_command()), needed=False)


def _tried(what: str, look: Callable[[], str], *, needed: bool = True) -> list[MachineFinding]:
    try:
        return [MachineFinding(what, look())]
    except RunError as error:
        return [MachineFinding(what, finding=error.diagnostics[0], needed=needed)]


def pyspark() -> list[MachineFinding]:
    """Check that PySpark is installed."""
    try:
        return [MachineFinding("PySpark", f"version {version('pyspark')}, Python {sys.version.split()[0]}")]
    except PackageNotFoundError:
        return [MachineFinding("PySpark", finding=check.no_pyspark("it is not installed"))]


def kafka() -> list[MachineFinding]:
    """Check that the client of Kafka is installed, which programs and commands for Kafka need."""
    what = "confluent-kafka"
    fix = f"{sys.executable} -m pip install 'wallaroo-spark-runtime[kafka]'"
    try:
        installed = version(what)
    except PackageNotFoundError:
        return [lacks(what, "it is not installed; programs with Kafka need it", fix, needed=False)]
    if tuple(map(int, installed.split(".")[:2])) >= FORGETTING:
        reason = f"version {installed} may never find brokers again that have stopped; use one before 2.11"
        return [lacks(what, reason, fix, needed=False)]
    return [MachineFinding(what, f"version {installed}")]


def memory() -> list[MachineFinding]:
    """Check the available memory of the machine and of the container."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    free = int(fields["MemAvailable"].split()[0]) << 10
    limit = CGROUP.read_text(encoding="ascii").strip() if CGROUP.is_file() else "max"
    usable = min(free, int(limit)) if limit.isdigit() else free
    text = f"{usable / GIB:.1f} GiB available"
    if usable >= NEEDED_BYTES:
        return [MachineFinding("memory", text)]
    fix = f"end other programs, or give the container {NEEDED_BYTES // GIB} GiB; --engine memory needs less"
    return [lacks("memory", f"{text}; a run on Spark needs about {NEEDED_BYTES // GIB} GiB", fix, needed=False)]


def ports() -> list[MachineFinding]:
    """Check whether a server can listen on this machine."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return [MachineFinding("ports", f"127.0.0.1:{server.getsockname()[1]} could be listened at")]
    except OSError as error:
        reason = f"no server can listen at 127.0.0.1; {error.strerror or error}"
        return [lacks("ports", reason, "bring the loopback interface up: `ip link set lo up`")]


def directories() -> list[MachineFinding]:
    """Check the directories that runs write to."""
    return [directory("checkpoints", state_directory(), "XDG_STATE_HOME"), caches(), temporary_files()]


LOOKS: tuple[Callable[[], Iterable[MachineFinding]], ...] = (
    java,
    java_classes,
    pyspark,
    go,
    kafka,
    memory,
    limits,
    ports,
    directories,
)
