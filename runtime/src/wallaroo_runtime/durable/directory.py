"""Reads and writes small files in a directory, which may be local or in a file system that Hadoop reaches."""

import shlex
import shutil
from pathlib import Path
from typing import Protocol

from wallaroo_runtime.durable.file import replace_file


class Directory(Protocol):
    """A directory with small files. Names are relative to the directory. Errors name the directory."""

    @property
    def removal(self) -> str:
        """The command that removes the directory."""

    def names(self, name: str) -> list[str]:
        """Return the names of the files in a folder of the directory; empty if there is no such folder."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""

    def write(self, name: str, content: bytes) -> None:
        """Replace the content of a file. A reader sees the old content or the new content."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder and everything in it. Nothing happens if it does not exist."""


class LocalDirectory:
    """A directory on this machine.

    Args:
        path: Path of the directory, which must exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    @property
    def removal(self) -> str:
        """The command that removes the directory."""
        return f"rm -r {shlex.quote(str(self))}"

    def names(self, name: str) -> list[str]:
        """Return the names in a folder of the directory; empty if there is no such folder."""
        return [path.name for path in (self._path / name).glob("*")]

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Replace the content of a file. The new content survives a loss of power."""
        replace_file(self._path / name, content, durable=True)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder and everything in it. Nothing happens if it does not exist."""
        if (self._path / name).is_dir():
            shutil.rmtree(self._path / name)
        else:
            (self._path / name).unlink(missing_ok=True)
