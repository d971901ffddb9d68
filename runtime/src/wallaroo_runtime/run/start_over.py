"""Removes a checkpoint before a run with `--fresh`, if the checkpoint is of the same application."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from wallaroo.diagnostic.diagnostic import Kind
from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import find_manifest, other_application
from wallaroo_runtime.durable.directory import Directory, LocalDirectory
from wallaroo_runtime.errors import RunError, count
from wallaroo_runtime.peer.local import stop_left_behind
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.storage.progress import progress_in

if TYPE_CHECKING:
    from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory


def start_over(
    place: "HeldDirectory | HadoopDirectory", name: str, reporter: Reporter, check: Callable[[], None] = lambda: None
) -> None:
    """Report the contents of a checkpoint, on this machine or at a URL, and remove them.

    Args:
        name: Name of the application.
        check: Raises an error if nothing may be removed.

    Raises:
        RunError: R603 if the checkpoint is of another application; then nothing is removed. Errors of the directory.
    """
    contents = _found(LocalDirectory(place.path) if isinstance(place, HeldDirectory) else place, name)
    check()
    if isinstance(place, HeldDirectory):
        stop_left_behind(place.path)
        check()
    if contents:
        reporter.note(f"--fresh removes {contents}")
    if not isinstance(place, HeldDirectory):
        place.remove(MANIFEST)  # first, as in `HeldDirectory.clear`: some file systems remove one file after the other
    place.clear()


def _found(directory: Directory, name: str) -> str:
    """Describe the checkpoint in a directory in words; empty if there is none."""
    try:
        manifest = find_manifest(directory)
    except RunError as error:
        if error.kind is not Kind.DAMAGED:
            raise
        return f"checkpoint {directory}, of which {error.diagnostics[0].message}"
    if manifest is None:
        return ""
    if manifest.name != name:
        raise other_application(directory, manifest.name, name)
    processed = _processed(directory, manifest.spark)
    return f'checkpoint {directory} of "{name}": {processed}'


def _processed(directory: Directory, spark: str) -> str:
    try:
        messages = progress_in(directory, f"{spark}/").messages_in
    except (OSError, RunError):  # a damaged checkpoint must not prevent its removal
        return "its positions cannot be read"
    return f"{count(messages, 'message')} of its journal processed"
