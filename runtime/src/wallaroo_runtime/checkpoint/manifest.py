"""Where `application.json` of a checkpoint lies: in a directory of this machine, or wherever Hadoop reaches."""

import json
import shlex
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.errors import RunError

CHECKSUM = "crc32"
FORMAT_VERSION = 2
# What a checkpoint that begins with what Goka's processors left says of that: it is to be taken over, or was.
PENDING, TAKEN = "pending", "taken"
MICROBATCH, REALTIME = MODES = ("microbatch", "realtime")


class Directory(Protocol):
    """Reads and writes small files; errors have its name."""

    @property
    def removal(self) -> str:
        """The command that removes it."""

    def names(self, name: str) -> list[str]:
        """Return the names in a directory of it; none when there is no such directory."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None when there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Give a file this content; a reader sees the old content or the new one."""

    def remove(self, name: str) -> None:
        """Remove a file, or a directory and everything in it; nothing when there is no such thing."""


class LocalDirectory:
    """A directory of this machine.

    Args:
        path: It; it exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    @property
    def removal(self) -> str:
        """The command that removes it."""
        return f"rm -r {shlex.quote(str(self))}"

    def names(self, name: str) -> list[str]:
        """Return the names in a directory of it; none when there is no such directory."""
        return [path.name for path in (self._path / name).glob("*")]

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None when there is none."""
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Give a file this content; it survives a loss of power."""
        replace_file(self._path / name, content, durable=True)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory and everything in it; nothing when there is no such thing."""
        if (self._path / name).is_dir():
            shutil.rmtree(self._path / name)
        else:
            (self._path / name).unlink(missing_ok=True)


def sealed(manifest: Mapping[str, Any]) -> bytes:
    """Return the content of `application.json`: the record with its checksum.

    Example:
        >>> unsealed(sealed({"format_version": 2}))
        {'format_version': 2}
    """
    checked = {**manifest, CHECKSUM: _checksum(manifest)}
    return (json.dumps(checked, ensure_ascii=False, indent=2) + "\n").encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """Read what `sealed` gave; a record of another version is not checked.

    Raises:
        ValueError: It is no JSON, or not what was written.
    """
    manifest = json.loads(content)
    if not isinstance(manifest, dict):
        reason = "it is no JSON object"
        raise ValueError(reason)
    found, version = manifest.pop(CHECKSUM, None), manifest.get("format_version")
    expected = _checksum(manifest)
    if version == FORMAT_VERSION and found != expected:
        reason = f"its checksum is {found}; what it says has {expected}"
        raise ValueError(reason)
    return manifest


def _checksum(manifest: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(manifest, sort_keys=True).encode()):08x}"


def read_manifest(checkpoint: Path) -> Mapping[str, Any]:
    """Return what the checkpoint says that its application is.

    Raises:
        RunError: R616, there is none; R698, it is damaged.
    """
    return manifest_in(LocalDirectory(checkpoint))


def other_application(directory: Directory, actual: str, expected: str) -> RunError:
    """Return the error for the checkpoint of another application than the expected one."""
    return RunError.of("R603", path=directory, actual=actual, expected=expected, command=directory.removal)


def mode_of(manifest: Mapping[str, Any]) -> str:
    """Return the mode of a checkpoint.

    Example:
        >>> mode_of({}), mode_of({"mode": "realtime"})
        ('microbatch', 'realtime')
    """
    return str(manifest.get("mode", MICROBATCH))


def manifest_in(directory: Directory) -> Mapping[str, Any]:
    """Return what a checkpoint, wherever it is, says that its application is.

    Raises:
        RunError: As `read_manifest`, and what the directory raises.
    """
    if (manifest := find_manifest(directory)) is None:
        raise RunError.of("R616", path=f"{directory}/{MANIFEST}", done="read", reason="there is no such file")
    return manifest


def find_manifest(directory: Directory) -> Mapping[str, Any] | None:
    """Return what a checkpoint says that its application is; None: it is no checkpoint.

    Raises:
        RunError: R698, the file is damaged.
    """
    try:
        content = directory.read(MANIFEST)
        return None if content is None else unsealed(content)
    except (OSError, ValueError) as error:
        raise RunError.of("R698", what=f"{directory}/{MANIFEST}", reason=error) from error
