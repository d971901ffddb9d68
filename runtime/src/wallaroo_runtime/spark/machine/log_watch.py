"""Finds in Spark's log the reason why a start waits: Spark retries for minutes, or forever, without an error."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.master import cluster_of

LOOK_S = 0.5
KEPT_CHARACTERS = 10_000


class Refusal(NamedTuple):
    """A reason for a standalone master to refuse a driver, and the text by which Spark's log shows it.

    Attributes:
        text: Regular expression for Spark's log.
        reason: The meaning of the text.
        fix: The remedy; may have {log}.
    """

    text: str
    reason: str
    fix: str


OWN_SECRET = (
    "set SPARK_CONF_DIR to the directory of the cluster's spark-defaults.conf, which has spark.authenticate.secret "
    "(docs/operators.md)"
)
REFUSALS = (
    Refusal("Unknown challenge message", "it asks for a secret, and this driver has none", OWN_SECRET),
    Refusal("Authentication failed", "this driver's secret is not the secret of the cluster", OWN_SECRET),
    Refusal(
        r"while bootstrapping client.*\n.*java\.io\.EOFException",
        "this driver asks for a secret, and the master has none",
        "give the secret to the cluster, too, or set no spark.authenticate for the driver (docs/operators.md)",
    ),
    Refusal("All masters are unresponsive", "it does not take this application", "look for the reason in {log}"),
)
NO_RESOURCES = "Initial job has not accepted any resources"  # the first time after 15 s
NO_EXECUTOR = (
    "the cluster gives no executor to this application, which waits; start a worker of the cluster, or ask for less: "
    "--conf spark.executor.memory=512m, --conf spark.executor.cores=1"
)

MASTER_LOST = "Disconnected from Spark cluster"
NO_MASTER = (
    "the master of the cluster is away; executors go on, but none that ends is replaced; start the master, and if it "
    "does not recover applications (spark.deploy.recoveryMode), then stop this application and run it again"
)


@contextmanager
def noticing(log: Path, look: Callable[[str], bool]) -> Iterator[None]:
    """During the block, pass new text of a log to `look`, in a thread. Stop when `look` returns True.

    Each call also gets the end of the text before, because an error in Spark's log has a few lines.
    """
    begin, ended = _size(log), Event()

    def watch() -> None:
        at, before = begin, ""
        while not ended.wait(LOOK_S):
            at = _begin(log, at)
            new = _text(log, at)
            if new and look(before + new.decode("utf-8", "replace")):
                return
            at, before = at + len(new), (before + new.decode("utf-8", "replace"))[-KEPT_CHARACTERS:]

    thread = Thread(target=watch, name="spark-log", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def refused_by_master(master: str, log: Path, end: Callable[[], object]) -> Iterator[None]:
    """Watch Spark's log during the block. If a standalone master refuses this driver, call `end` to end the block.

    Args:
        log: Spark's log.
        end: Makes the block fail, by killing Java.

    Raises:
        RunError: R659 with the reason, in place of an error of the block.
    """
    if not master.startswith("spark://"):
        yield
        return
    begin = _size(log)

    def look(text: str) -> bool:
        if _refusal(text) is None:
            return False
        end()
        return True

    try:
        with noticing(log, look):
            yield
    except Exception as error:
        refusal = _refusal(_text(log, _begin(log, begin)).decode("utf-8", "replace"))
        if refusal is None:
            raise
        fix = refusal.fix.format(log=log)
        raise RunError.of("R659", master=master, reason=refusal.reason, fix=fix) from error


@contextmanager
def waiting_for_executors(master: str, log: Path, note: Callable[[str], None]) -> Iterator[None]:
    """During the block, notify the user once if a cluster has no room for the application."""
    with noting(NO_RESOURCES, log, partial(note, NO_EXECUTOR)) if cluster_of(master) else nullcontext():
        yield


@contextmanager
def watching_master(master: str, log: Path, note: Callable[[str], None]) -> Iterator[None]:
    """During the block, notify the user once if the master of a standalone cluster is away, or was started again.

    A master that has lost its applications gives an application no further executors, and Spark waits forever.
    """
    with noting(MASTER_LOST, log, partial(note, NO_MASTER)) if master.startswith("spark://") else nullcontext():
        yield


@contextmanager
def noting(found: str, log: Path, note: Callable[[], None]) -> Iterator[None]:
    """During the block, call `note` as soon as a log has the text `found`, once."""

    def look(text: str) -> bool:
        if found not in text:
            return False
        note()
        return True

    with noticing(log, look):
        yield


def _refusal(text: str) -> Refusal | None:
    return next((each for each in REFUSALS if re.search(each.text, text)), None)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _begin(log: Path, at: int) -> int:
    """Return the offset at which reading of a log continues: `at`, or 0 if Spark has begun a new file."""
    return 0 if _size(log) < at else at


def _text(log: Path, begin: int) -> bytes:
    try:
        with log.open("rb") as file:
            file.seek(begin)
            return file.read()
    except OSError:
        return b""
