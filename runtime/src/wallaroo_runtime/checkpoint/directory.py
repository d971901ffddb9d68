"""Finds the directory of a checkpoint, and locks it for one process."""

import hashlib
import os
import re
import shlex
import shutil
import unicodedata
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Kind
from wallaroo_runtime.checkpoint.registry import running, running_with, state_directory
from wallaroo_runtime.durable.file import check_open, disk_failure, refuse_links, user_name
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.program.app import hint, resolve
from wallaroo_runtime.system.disk import measure
from wallaroo_runtime.system.lock import lock_directory

LOCK = "driver.lock"
MANIFEST = "application.json"
WORKERS = "workers"  # folder of the user's unpacked workers
SPARK = "spark"  # name of Spark's own checkpoint, until `rescale` makes another one


def default_directory(application: str, language: str, app: Path) -> Path:
    """Return the checkpoint directory of a run without `--checkpoint`.

    Tutorials share application names, so the name of the directory has the language and a digest of the program's path.

    Args:
        application: Name of the application.
        language: Language of its first worker.
        app: File or directory of the program.
    """
    return state_directory() / f"{slug(application)}-{language}-{_digest(app)}"


def find_directory(text: str) -> Path:
    """Return the checkpoint that a command line names by its directory, its program, or the name of a run.

    Raises:
        RunError: R616 if nothing has this name, it has no checkpoint, or this user may not read it; R715 if it has
            several; R711 if the checkpoint has links.
    """
    if "://" in text:
        fix = "give the name of the application, or the directory on the driver's machine: `wallaroo ps` shows both"
        raise RunError.of("R715", USAGE, path=text, reason="this takes the directory that belongs to it here", fix=fix)
    path = Path(text)
    check_open(path)
    if (path / MANIFEST).is_file() or str(path.absolute()) in {each["checkpoint"] for each in running()}:
        refuse_links(path.absolute(), [WORKERS])
        return path.absolute()
    app = _program(text, path)
    if app is not None and (checkpoint := _of_program(text, app)) is not None:
        return checkpoint
    if (checkpoint := running_directory(text)) is not None:
        return checkpoint
    reason = f"there is no such checkpoint or program{hint(path)}{what_runs()}"
    if app is not None:
        reason = "it is no checkpoint, and no program that runs, or was run without --checkpoint"
        reason += f"; --engine memory keeps nothing{what_runs()}"
    raise RunError.of("R616", USAGE, path=text, done="read", reason=reason)


def running_directory(name: str) -> Path | None:
    """Return the checkpoint of the running application with a name; None if no such application runs.

    Raises:
        RunError: R715 if several run.
    """
    checkpoints = [Path(each["checkpoint"]) for each in running() if each["application"] == name]
    if len(checkpoints) > 1:
        fix = f"give one of {', '.join(map(str, checkpoints))}"
        raise RunError.of("R715", USAGE, path=name, reason=f"{len(checkpoints)} applications of this name run", fix=fix)
    return checkpoints[0] if checkpoints else None


def what_runs() -> str:
    """Return `; what runs is NAMES` with the names of running applications; empty if none runs."""
    names = sorted({f'"{each["application"]}"' for each in running()})
    return f"; what runs is {', '.join(names)}" if names else ""


def _of_program(text: str, app: Path) -> Path | None:
    own = {entry for entry in state_directory().glob(f"[!.]*-{_digest(app)}") if (entry / MANIFEST).is_file()}
    checkpoints = sorted(own | running_with(app))
    if not checkpoints:
        return None
    if len(checkpoints) > 1:
        fix = f"give one of {', '.join(map(str, checkpoints))}"
        raise RunError.of("R715", USAGE, path=text, reason="this program has several checkpoints", fix=fix)
    refuse_links(checkpoints[0], [WORKERS])
    return checkpoints[0]


def _program(text: str, path: Path) -> Path | None:
    """Return the file or directory of a program that a text names, or else the path if something is there."""
    try:
        return Path(resolve(text).path)
    except RunError as error:
        if path.exists():
            return path
        if error.kind is not Kind.ABSENT:
            raise
        return None


def _digest(app: Path) -> str:
    return hashlib.sha256(os.fsencode(app.resolve())).hexdigest()[:12]


def slug(name: str) -> str:
    """Return a name as part of a file name: lower-case ASCII letters, digits and hyphens.

    Example:
        >>> slug("Word Count: é!")
        'word-count-e'
    """
    text = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")[:60] or "application"


class HeldDirectory:
    """A checkpoint directory that this process has locked, so that no other process changes it.

    Attributes:
        path: The directory, absolute.
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def take(cls, path: Path) -> "HeldDirectory":
        """Lock the directory until `release` or the end of this process. Create it if it does not exist.

        Raises:
            RunError: R610 if another driver has locked it, R715 if it is no checkpoint or cannot be used.
        """
        path = path.absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.stat().st_uid != os.getuid():
                raise _not_usable(path, f"it belongs to user {user_name(path.stat().st_uid)}")
            if not (path / LOCK).exists() and not (path / MANIFEST).exists() and any(path.iterdir()):
                raise _not_usable(path, "it holds other files")
            path.chmod(0o700)
            return cls(path, lock_directory(path, LOCK))
        except OSError as error:
            failure = disk_failure(error, path)
            made = f"`install -d -m 700 -o {user_name(os.geteuid())} {shlex.quote(str(path))}`"
            otherwise = f", or let root make it for you: {made}" if isinstance(error, PermissionError) else ""
            raise failure or _not_usable(path, error.strerror or str(error), otherwise) from error

    def release(self) -> None:
        """Release the lock, and leave the lock file in the directory."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def check_links(self) -> None:
        """Refuse a checkpoint with symbolic links, because links in a copied checkpoint could lead anywhere.

        Raises:
            RunError: R711 if there is a link.
        """
        refuse_links(self.path, [WORKERS])

    def size(self) -> int:
        """Return the bytes of all files in the directory."""
        return measure(self.path)

    def clear(self) -> None:
        """Remove everything in the directory except the lock. Links are removed, not followed.

        The record goes first, so that no run continues with a part that a kill has left.
        """
        for entry in sorted(self.path.iterdir(), key=lambda entry: entry.name != MANIFEST):
            if entry.name == LOCK:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _not_usable(path: Path, reason: str, otherwise: str = "") -> RunError:
    return RunError.of("R715", USAGE, path=path, reason=reason, fix=f"give another --checkpoint{otherwise}")
