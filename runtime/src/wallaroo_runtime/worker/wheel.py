"""Installs wheels without pip: an executor may have none, and no network."""

import shutil
import zipfile
from pathlib import Path

COPY_BYTES = 1 << 20
LIBRARIES = ("purelib", "platlib")


def unpack_wheel(wheel: Path, directory: Path, max_bytes: int) -> None:
    """Unpack a wheel so that its modules can be imported from a directory; its scripts are left out.

    Args:
        wheel: The file.
        directory: Where the modules go; made when it is missing.
        max_bytes: At most so much is written.

    Raises:
        ValueError: It is no wheel, or a member would lie elsewhere.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = {entry: installed_name(entry.filename) for entry in archive.infolist() if not entry.is_dir()}
            if sum(entry.file_size for entry in members) > max_bytes:
                reason = f"{wheel.name} holds more than {max_bytes} bytes"
                raise ValueError(reason)
            for entry in filter(members.get, members):
                _install(archive, entry, directory / members[entry])
    except zipfile.BadZipFile as error:
        reason = f"{wheel.name} is no wheel: {error}"
        raise ValueError(reason) from error


def _install(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, target.open("wb") as out:
        shutil.copyfileobj(source, out, COPY_BYTES)


def installed_name(member: str) -> str:
    """Return where a member of a wheel goes, relative to the directory of modules; empty: nowhere.

    Raises:
        ValueError: It would lie elsewhere.

    Example:
        >>> [installed_name(name) for name in ("x/y.py", "x-1.data/purelib/y.py", "x-1.data/scripts/z")]
        ['x/y.py', 'y.py', '']
    """
    parts = member.split("/")
    if member.startswith("/") or ".." in parts or "\\" in member or "\0" in member:
        reason = f"{member[:80]!r} would lie outside of the directory of modules"
        raise ValueError(reason)
    if parts[0].endswith(".data"):
        return "/".join(parts[2:]) if len(parts) > 2 and parts[1] in LIBRARIES else ""
    return member
