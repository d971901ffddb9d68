"""What `--fresh` removes before a run: the application's own checkpoint, and no other one."""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from wallaroo_runtime.checkpoint.directory import SPARK, Place
from wallaroo_runtime.checkpoint.manifest import Directory, LocalDirectory, find_manifest
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.local import stop_left_behind
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.system.disk import measure

if TYPE_CHECKING:
    from wallaroo_runtime.spark.hadoop import HadoopDirectory

DAMAGED = "R698"


def start_over(place: Place, name: str, reporter: Reporter, check: Callable[[], None] = lambda: None) -> None:
    """Remove everything in a checkpoint directory of this machine, and notify the user of what that is.

    Args:
        name: Of the application.
        check: Raises what shall keep anything from being removed.

    Raises:
        RunError: R797, it is the checkpoint of another application; everything stays.
    """
    directory = LocalDirectory(place.path)
    found = _found(directory, name, f"rm -r {shlex.quote(str(directory))}")
    size = measure(place.path) if found else 0
    check()
    stop_left_behind(place.path)
    check()
    if found:
        reporter.note(f"--fresh removes {found}, {size:,} bytes")
    place.clear()


def start_over_at(
    directory: "HadoopDirectory", name: str, reporter: Reporter, check: Callable[[], None] = lambda: None
) -> None:
    """Do what `start_over` does, with a checkpoint at a URL.

    Raises:
        RunError: As `start_over`, and what the directory raises.
    """
    found = _found(directory, name, f"hadoop fs -rm -r {shlex.quote(str(directory))}")
    size = directory.size() if found else 0
    check()
    if found:
        reporter.note(f"--fresh removes {found}, {size:,} bytes")
    directory.clear()


def _found(directory: Directory, name: str, command: str) -> str:
    """Return in words what lies in a directory; empty: nothing.

    Args:
        command: Removes it.
    """
    try:
        manifest = find_manifest(directory)
    except RunError as error:
        if error.diagnostics[0].code != DAMAGED:
            raise
        return f"checkpoint {directory}, of which {error.diagnostics[0].message}"
    if manifest is None:
        return ""
    if manifest.get("name") != name:
        raise RunError.of("R797", path=directory, actual=manifest.get("name"), expected=name, command=command)
    count = _processed(directory, str(manifest.get("spark", SPARK)))
    return f'checkpoint {directory} of "{name}": {count}'


def _processed(directory: Directory, spark: str) -> str:
    from wallaroo_runtime.spark.progress import progress_in  # late: it imports pyspark

    try:
        count = progress_in(directory, f"{spark}/").messages_in
    except (OSError, ValueError, KeyError, TypeError):  # what is damaged may be removed
        return "its positions cannot be read"
    return f"{count:,} messages of its journal processed"
