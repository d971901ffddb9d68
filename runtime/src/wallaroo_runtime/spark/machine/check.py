"""Checks of the machine: `wallaroo doctor` shows their results, and a start refuses a machine that fails them."""

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.spark.machine.jar import packed_jar
from wallaroo_runtime.spark.machine.java import check_java
from wallaroo_runtime.system.cache import cache_directory

FREE_DISK_BYTES = 1 << 30
GIB = 1 << 30
# Name and number of a limit, a good value, the least value for a run on Spark, and the option of `ulimit`.
LIMITS = (
    ("open files", resource.RLIMIT_NOFILE, 1024, 512, "-n"),
    ("processes", resource.RLIMIT_NPROC, 512, 256, "-u"),  # this limit counts threads, of which Java has some hundred
)


class MachineFinding(NamedTuple):
    """The result of one check of the machine.

    Attributes:
        what: Name of the checked thing.
        finding: The problem, if there is one.
        needed: Whether the problem prevents every run.
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


def lacks(what: str, reason: str, fix: str, *, needed: bool = True) -> MachineFinding:
    """Return the result of a check that failed, with the problem and its remedy."""
    return MachineFinding(what, finding=Diagnostic.of("R742", what=what, reason=reason, fix=fix), needed=needed)


def no_pyspark(error: object) -> Diagnostic:
    """Return the finding that PySpark is not installed."""
    install = "'wallaroo-spark-runtime[spark]'"
    if not packed_jar().is_file():
        install += ", or rather run `make setup` in the checkout, which also builds the Java classes"
    return Diagnostic.no_package("a run on Spark", "pyspark", error, install)


def check_machine() -> None:
    """Refuse a machine on which Spark does not start. Raise the limits of this process as far as its user may do so.

    Raises:
        RunError: R728 without PySpark, R602 without a usable Java, R742 for a directory or limit that prevents a run.
    """
    if find_spec("pyspark") is None:
        raise RunError([no_pyspark("it is not installed")], USAGE)
    for _, number, *_ in LIMITS:
        hard = resource.getrlimit(number)[1]
        resource.setrlimit(number, (hard, hard))
    findings = [each.finding for each in (*limits(), temporary_files()) if each.finding and each.needed]
    if findings:
        raise RunError(findings)
    check_java()  # after the limits, because Java's error about a limit is less clear


def limits() -> Iterator[MachineFinding]:
    """Check the limits of the shell in which the user has started this process."""
    for what, number, good, least, letter in LIMITS:
        soft, hard = (limit if limit != resource.RLIM_INFINITY else 1 << 62 for limit in resource.getrlimit(number))
        if soft >= good:
            yield MachineFinding(what, f"limit {soft}" if soft < 1 << 62 else "limit unlimited")
            continue
        fix = f"ulimit {letter} {good}" + ("" if hard >= good else ", which an administrator has to allow")
        is_bound = number != resource.RLIMIT_NPROC or os.geteuid() != 0
        reason = f"the limit is {soft}; at least {good} are good"
        yield lacks(what, reason, fix, needed=hard < least and is_bound)


def temporary_files() -> MachineFinding:
    """Check the directory of temporary files, from which Java also loads native libraries."""
    try:
        path = Path(tempfile.gettempdir())
    except OSError as error:  # Python found no directory to which it can write
        fix = "free some space, or give a directory with TMPDIR"
        return lacks("temporary files", error.strerror or str(error), fix)
    folder = os.environ.get("TMPDIR", "")  # Python silently replaces it; Java, Go and workers do not
    if folder and Path(folder).resolve() != path.resolve():
        return lacks(
            "temporary files", f"TMPDIR is {folder}, to which nothing can be written", "make it, or correct TMPDIR"
        )
    return directory("temporary files", path, "TMPDIR", runs="Java loads libraries from there")


def caches() -> MachineFinding:
    """Check the directory of caches, which holds programs in Go that a run executes."""
    return directory("caches", cache_directory(), "XDG_CACHE_HOME", runs="programs in Go run from there", needed=False)


def directory(what: str, path: Path, variable: str, *, runs: str = "", needed: bool = True) -> MachineFinding:
    """Check a directory that runs write to.

    Args:
        what: Names the directory.
        variable: The environment variable that chooses another directory.
        runs: Names the programs that are executed there; empty if there are none.
        needed: Whether a directory without permission to execute prevents every run.
    """
    there = next(each for each in (path, *path.parents) if each.exists())
    fix = f"give another directory with {variable}"
    is_read_only = os.statvfs(there).f_flag & os.ST_RDONLY  # needed because `access` may succeed for root
    if not there.is_dir() or is_read_only or not os.access(there, os.W_OK | os.X_OK):
        return lacks(what, f"{there} cannot be written to", fix)
    if runs and os.statvfs(there).f_flag & os.ST_NOEXEC:
        return lacks(what, f"{there} is mounted noexec; {runs}", fix, needed=needed)
    free = shutil.disk_usage(there).free
    text = f"{path}, {free / GIB:.1f} GiB free"
    if free < FREE_DISK_BYTES:
        return lacks(what, f"{text}; runs write until the disk is full", f"free some space, or {fix}", needed=False)
    return MachineFinding(what, text)
