"""Installs the wheels of an archive without pip, because an executor may have no pip. Nothing in a wheel is trusted."""

import errno
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.records import RecordEntry
from installer.sources import WheelFile
from installer.utils import Scheme

LIBRARIES = ("purelib", "platlib")
MAX_FILES = 100_000
MAX_METADATA_BYTES = 16 * 1024 * 1024  # limit for one file, because the library reads it into memory
# Errors for a name that is impossible or in use: the fault is in the wheel, not in the disk.
_ODD_NAMES = {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}


def unpack_wheel(wheel: Path, directory: Path, max_bytes: int) -> int:
    """Unpack a wheel so that its modules can be imported from a directory. Its scripts are left out.

    Args:
        directory: Directory for the modules, which is created if it is missing.
        max_bytes: Limit for the total size of the files, as the wheel states it.

    Returns:
        Total size of the wheel's files in bytes.

    Raises:
        ValueError: The file is no wheel, or a member would be outside of the directory.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            size, source = _checked_size(archive, max_bytes), WheelFile(archive)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the library warns of compiled files, which it leaves out
                install(source, _Modules(directory), {})
    except OSError as error:
        if error.errno not in _ODD_NAMES:
            raise
        raise _no_wheel(wheel, error) from error
    except Exception as error:  # odd bytes may cause any error in the libraries that read them
        raise _no_wheel(wheel, error) from error
    return size


def _no_wheel(wheel: Path, error: Exception) -> ValueError:
    """Return the error that a file is no wheel, with the reason."""
    return ValueError(f"{wheel.name} is no wheel that can be installed: {str(error)[:200] or type(error).__name__}")


def _checked_size(archive: zipfile.ZipFile, max_bytes: int) -> int:
    """Return the total size of the members. Raise ValueError if it is too large, or a path leaves the directory."""
    members = archive.infolist()
    size = sum(entry.file_size for entry in members)
    if size > max_bytes or len(members) > MAX_FILES:
        reason = f"it holds {size} bytes in {len(members)} files; at most {max_bytes} in {MAX_FILES} are unpacked"
        raise ValueError(reason)
    for entry in members:
        parts = entry.filename.removesuffix("/").split("/")
        if set(parts) & {"", ".", ".."} or "\\" in entry.filename:
            reason = f"{entry.filename[:80]!r} would lie outside of the directory of modules"
            raise ValueError(reason)
        if entry.filename == parts[0] and parts[0].endswith(".data"):  # `installer` would never return
            reason = f"{entry.filename[:80]!r} is a file; the wheel's data is a directory"
            raise ValueError(reason)
        if parts[0].endswith(".dist-info") and entry.file_size > MAX_METADATA_BYTES:
            reason = f"{entry.filename[:80]!r} has {entry.file_size} bytes; at most {MAX_METADATA_BYTES} are read"
            raise ValueError(reason)
    return size


class _Modules(SchemeDictionaryDestination):
    """Writes the modules of a wheel, and leaves out scripts and data.

    Existing files are replaced, because two wheels may share a file of a namespace package.
    """

    def __init__(self, directory: Path) -> None:
        schemes = dict.fromkeys(LIBRARIES, str(directory))
        super().__init__(schemes, interpreter="", script_kind="posix", overwrite_existing=True)

    def write_script(self, name: str, module: str, attr: str, section: str) -> RecordEntry:
        return RecordEntry(name, None, None)

    def write_file(self, scheme: Scheme, path: object, stream: BinaryIO, is_executable: bool) -> RecordEntry:
        if scheme not in LIBRARIES:
            return RecordEntry(str(path), None, None)
        return super().write_file(scheme, str(path), stream, is_executable=False)

    def finalize_installation(
        self, scheme: Scheme, record_file_path: str, records: Iterable[tuple[Scheme, RecordEntry]]
    ) -> None:
        written = [(each, record) for each, record in records if each in LIBRARIES]
        super().finalize_installation(scheme, record_file_path, written)
