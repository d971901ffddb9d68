"""Reads and unpacks the archive of an application. No content is used before its hash was compared.

The archive is a gzipped tar file with topology, programs and wheels, which `wallaroo pack` writes for executors. Its
first member, `manifest.json`, lists every other member with size and SHA-256. In the topology, commands and directories
of workers contain placeholders for the directory into which an executor unpacks the members.
"""

import gzip
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from wallaroo_runtime.archive.manifest import (
    ARCHIVE_VERSION,
    MANIFEST,
    MAX_BYTES,
    TOPOLOGY,
    ArchiveManifest,
    Member,
    broken,
    check_ratio,
)
from wallaroo_runtime.archive.placeholder import SITE, this_platform
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.topology.model import PROTOCOL_VERSION

ANY_PLATFORM = "any"
ARCHITECTURES = ("amd64", "arm64")  # processor architectures for which archives are made
MAX_MANIFEST_BYTES = 16 * 1024 * 1024
COPY_BYTES = 1 << 20
PYTHON_SECONDS = 30
MAX_NAME_BYTES = 4096
REFUSED_HEADERS = frozenset(
    (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE)
)
TAR_OVERHEAD_BYTES = 4096  # limit for the extra bytes of a member: its header, a header with a long name, and padding


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that `read_archive` has read: all its files match its manifest.

    Attributes:
        digest: SHA-256 of the archive in hexadecimal. Executors unpack only an archive with this digest.
        manifest: The manifest of the archive.
    """

    path: Path
    digest: str
    manifest: ArchiveManifest
    topology: bytes


def read_archive(path: Path) -> Archive:
    """Read an archive, and compare all members with the hashes in its manifest. Nothing is written.

    Raises:
        RunError: R655 if the archive is damaged, was changed, or is of another version.
    """
    topology: list[bytes] = []
    with _told(path):
        digest = file_digest(path)
        reader = _Reader(path)
        for member, file in reader.files():
            topology += [block for block in _checked(member, file) if member.name == TOPOLOGY]
        if not topology:
            raise broken(reason="it has no topology")
    if reader.manifest.protocol_version != PROTOCOL_VERSION:
        reason = f"its workers speak protocol {reader.manifest.protocol_version}"
        raise other_release(path, reason, f"protocol {PROTOCOL_VERSION}")
    return Archive(path, digest, reader.manifest, b"".join(topology))


def other_release(path: Path, reason: str, expected: str) -> RunError:
    """Return the error for an archive that another release of Wallaroo has packed (R655)."""
    reason = f"it was packed for another release; {reason}; this runtime knows {expected}"
    return RunError.of("R655", USAGE, path=path, reason=reason)


def check_platform(path: Path, manifest: ArchiveManifest, machine: str = "this machine") -> None:
    """Check that an archive has a worker for the platform of this machine.

    Args:
        machine: Description of this machine, for the error.

    Raises:
        RunError: R655 if the archive has no such worker.
    """
    mine = this_platform()
    if manifest.platforms and mine not in manifest.platforms:
        known = ", ".join(manifest.platforms)
        raise RunError.of("R655", USAGE, path=path, reason=f"it is packed for {known}; {machine} has {mine}")


def unpack(path: Path, digest: str, directory: Path, python: str) -> None:
    """Unpack an archive into a directory, for the workers of an executor. Do nothing if the directory exists.

    The wheels for this machine are installed into `site` in the directory.

    Args:
        digest: SHA-256 that the archive must have.
        directory: Directory for the files. It gets its name when it is complete, so other tasks never see a part of it.
        python: The interpreter that will import the wheels.

    Raises:
        RunError: R655 if the archive is damaged, is not the expected archive, or has nothing for this machine.
    """
    if directory.exists():
        return
    with _told(path):
        actual = file_digest(path)
        if actual != digest:
            raise broken(reason=f"its SHA-256 is {actual}; the driver read one with {digest}")
        work = Path(tempfile.mkdtemp(prefix=directory.name + ".", dir=directory.parent))
        try:
            manifest = _extract(path, work)
            machine = f"the executor on {platform.node()}"
            check_platform(path, manifest, machine)
            _check_python(path, manifest.python, python, machine)
            _appear(work, directory)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _check_python(path: Path, wanted: str, python: str, machine: str) -> None:
    """Check that the wheels of an archive are for the interpreter's version of Python."""
    if not wanted:
        return
    command = [python, "-I", "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PYTHON_SECONDS, check=False)
    actual = done.stdout.strip() or done.stderr.strip()[-200:] or "nothing that runs"
    if actual != wanted:
        known, actual = f"Python {wanted}", f"Python {actual} in {python}"
        raise RunError.of("R655", USAGE, path=path, reason=f"it is packed for {known}; {machine} has {actual}")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(COPY_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _appear(work: Path, directory: Path) -> None:
    """Rename the unpacked directory to its final name, now that it is complete."""
    try:
        work.rename(directory)
    except OSError:
        if not directory.is_dir():  # another task of this executor has made the same directory first
            raise


def _extract(path: Path, directory: Path) -> ArchiveManifest:
    """Write all members into a directory, and install the wheels for this machine."""
    from wallaroo_runtime.archive.wheel import unpack_wheel  # late import: few tasks unpack wheels

    reader = _Reader(path)
    for member, file in reader.files():
        target = directory / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as out:
            for block in _checked(member, file):
                out.write(block)
        target.chmod(0o700 if member.is_executable else 0o600)
    left = MAX_BYTES
    for folder in (ANY_PLATFORM, this_platform()):
        for wheel in sorted((directory / "wheels" / folder).glob("*.whl")):
            left -= unpack_wheel(wheel, directory / SITE, left)
    return reader.manifest


def _checked(member: Member, file: IO[bytes]) -> Iterator[bytes]:
    """Yield a member's content in blocks. After the last block, refuse content that does not match the manifest."""
    digest, size = hashlib.sha256(), 0
    while block := file.read(COPY_BYTES):
        digest.update(block)
        size += len(block)
        yield block
    if size != member.bytes or digest.hexdigest() != member.sha256:
        raise broken(reason=f"{member.name} is not what the manifest says")


CHANGED = "it is not the archive of an application, or was changed after it was packed"


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn errors in the block into R616 (the file cannot be read) or R655 (it is not a good archive)."""
    try:
        yield
    except (RunError, subprocess.TimeoutExpired):
        raise
    except Exception as error:  # odd bytes may cause any error in the libraries that read them
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            place, reason = error.filename or path, error.strerror or str(error)
            raise RunError.of("R616", USAGE, path=place, done="read", reason=reason) from error
        raise RunError.of("R655", path=path, reason=f"{CHANGED}; {error or type(error).__name__}") from error


class _Bounded:
    """A stream that refuses to unpack more bytes than expected, so that a small archive cannot fill the disk."""

    def __init__(self, source: gzip.GzipFile, limit: int) -> None:
        self._source, self.left = source, limit

    def read(self, size: int) -> bytes:
        block = self._source.read(size)
        self.left -= len(block)
        if self.left < 0:
            raise broken(reason="it has more bytes than its manifest lists")
        return block


class _Header(tarfile.TarInfo):
    """The header of a member in a tar file. Only headers of files and of long names are accepted.

    Other headers are refused before `tarfile` reads the data that they announce. `wallaroo pack` writes none of them,
    and a few bytes of them may keep the reader busy for days: records of a pax header are searched again and again,
    records of a global header are copied to every member.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        header = super().frombuf(buf, encoding, errors)
        is_name = header.type == tarfile.GNUTYPE_LONGNAME
        if header.type in REFUSED_HEADERS or is_name and header.size > MAX_NAME_BYTES:
            raise broken(reason=f"it has a header of type {header.type!r} and {header.size} bytes")
        return header


class _Reader:
    """Reads the members of an archive in order. `manifest` is None until `files` has yielded the first member."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.manifest: ArchiveManifest

    def files(self) -> Iterator[tuple[Member, IO[bytes]]]:
        """Yield each member that the manifest lists, with its content. Refuse an archive with any other member."""
        with gzip.open(self._path, "rb") as stream:
            bounded: Any = _Bounded(stream, MAX_MANIFEST_BYTES + tarfile.RECORDSIZE)
            with tarfile.open(fileobj=bounded, mode="r|", bufsize=tarfile.RECORDSIZE, tarinfo=_Header) as tar:
                self.manifest = self._read_manifest(tar)
                expected = {member.name: member for member in self.manifest.members}
                check_ratio(self._path.stat().st_size, self.manifest)
                overhead = TAR_OVERHEAD_BYTES * len(self.manifest.members)
                bounded.left += self.manifest.total_bytes + overhead + tarfile.RECORDSIZE
                while entry := tar.next():
                    member = expected.pop(entry.name, None)
                    yield self._allowed(entry, member), _content(tar, entry)
                if expected:
                    raise broken(reason=f"{min(expected)} is missing")

    def _read_manifest(self, tar: tarfile.TarFile) -> ArchiveManifest:
        first = tar.next()
        if first is None or first.name != MANIFEST or not first.isreg() or first.size > MAX_MANIFEST_BYTES:
            raise broken(reason="it does not begin with a manifest")
        try:
            value: Any = json.loads(_content(tar, first).read())
        except RecursionError as error:
            raise broken(reason="its manifest is nested too deeply") from error
        version = value.get("archive_version") if isinstance(value, Mapping) else None
        if version != ARCHIVE_VERSION:
            reason = f"its format has version {version!r}"
            raise other_release(self._path, reason, f"version {ARCHIVE_VERSION}")
        return ArchiveManifest.from_json(value)

    @staticmethod
    def _allowed(entry: tarfile.TarInfo, member: Member | None) -> Member:
        """Return the description of a member in the manifest. Refuse a member that does not match its description."""
        if member is None:
            raise broken(reason=f"{entry.name[:80]!r} is not in its manifest, or is there twice")
        if not entry.isreg() or entry.issparse():
            raise broken(reason=f"{entry.name} is a link, a directory or a device")
        if entry.size != member.bytes:
            raise broken(reason=f"{entry.name} has {entry.size} bytes; the manifest says {member.bytes}")
        return member


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(entry)
    if file is None:
        raise broken(reason=f"{entry.name} has no content")
    return file
