"""Locks the directory of a checkpoint, so that only one process uses it."""

import os
import shlex
import shutil
from pathlib import Path

from wallaroo_runtime.checkpoint.directory import MANIFEST, WORKERS
from wallaroo_runtime.durable.file import disk_failure, refuse_links, user_name
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.system.lock import lock_directory

LOCK = "driver.lock"


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
        """Check that the checkpoint has no symbolic links: in a copied checkpoint they could lead anywhere.

        Raises:
            RunError: R711 if there is a link.
        """
        refuse_links(self.path, [WORKERS])

    def clear(self) -> None:
        """Remove everything in the directory except the lock. Links are removed, not followed.

        The record (`application.json`) goes first. So if a kill interrupts this, no run continues with the rest.
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
