"""The manifest of an archive, which is checked before any other member is read."""

import re
from dataclasses import asdict, dataclass
from typing import Any

ARCHIVE_VERSION = 1
MANIFEST, TOPOLOGY = "manifest.json", "topology.json"
MAX_FILES = 100_000
MAX_FILE_BYTES = 1 << 30
MAX_BYTES = 4 << 30
MAX_TOPOLOGY_BYTES = 64 << 20
# Limit for the unpacked size: this multiple of the archive's size, plus these bytes.
MAX_RATIO, MAX_FREE_BYTES = 100, 64 << 20
MAX_PART_BYTES = 255
_NAME = re.compile(r"[^\x00-\x1f\x7f\\]{1,1000}")


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive, as the manifest lists it.

    Attributes:
        name: Path of the file, with `/`.
        sha256: SHA-256 of its content, in hexadecimal.
        is_executable: Whether the file is a program.
    """

    name: str
    bytes: int
    sha256: str
    is_executable: bool = False


@dataclass(frozen=True, slots=True)
class ArchiveManifest:
    """The first member of an archive: it describes the archive and lists all other members.

    Attributes:
        runtime_version: Version of the runtime that packed the archive.
        platforms: Platforms for which the archive has workers; empty if its workers run on all platforms.
        python: Version of Python for the wheels, e.g. `3.11`; empty if the archive has no wheels. Then workers use the
            packages of the interpreter.
        members: All other files of the archive, in their order.
    """

    runtime_version: str
    protocol_version: int
    platforms: tuple[str, ...]
    python: str
    members: tuple[Member, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as a JSON object."""
        return {"archive_version": ARCHIVE_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, value: Any) -> "ArchiveManifest":
        """Return the manifest that `to_json` has written.

        Raises:
            ValueError: The value has another form; the text has the reason.
        """
        try:
            members = tuple(Member(**entry) for entry in value["members"])
            rest = {name: value[name] for name in ("runtime_version", "protocol_version", "python")}
            manifest = cls(platforms=tuple(value["platforms"]), members=members, **rest)
        except (TypeError, KeyError) as error:
            raise broken(reason=f"its manifest has another form: {error}") from error
        manifest.check()
        return manifest

    @property
    def total_bytes(self) -> int:
        """Total size of the members."""
        return sum(member.bytes for member in self.members)

    def check(self) -> None:
        """Check that the manifest keeps the limits for archives. Readers refuse an archive beyond these limits.

        Raises:
            ValueError: The text has the reason.
        """
        texts = (self.runtime_version, self.python, *self.platforms)
        if not all(isinstance(text, str) for text in texts) or type(self.protocol_version) is not int:
            raise broken(reason="its manifest has another form: a version or platform is none")
        if len(self.members) > MAX_FILES:
            raise broken(reason=f"it lists {len(self.members)} files; at most {MAX_FILES} are read")
        for member in self.members:
            if fault := _fault(member):
                raise ValueError(fault)
        names = [member.name for member in self.members]
        if len(set(names)) != len(names):
            raise broken(reason="its manifest lists a file twice")
        folders = {"/".join(parts[:-number]) for parts in map(_parts, names) for number in range(1, len(parts))}
        if both := folders & set(names):
            raise broken(reason=f"{min(both)} is a file and a directory")
        if self.total_bytes > MAX_BYTES:
            raise broken(reason=f"its files have more than {MAX_BYTES} bytes together")


def _parts(name: str) -> list[str]:
    return name.split("/")


def _fault(member: Member) -> str:
    """Return the reason why the manifest's entry for a member is wrong; empty if it is right."""
    name = member.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not _is_possible(name):
        return f"a name in its manifest is not usable: {str(name)[:80]!r}"
    if name.startswith("/") or set(_parts(name)) & {"", ".", ".."} or name == MANIFEST:
        return f"{name!r} would lie outside of the archive's own directory"
    if type(member.bytes) is not int or not 0 <= member.bytes <= MAX_FILE_BYTES:
        return f"{name} has {member.bytes!r} bytes; at most {MAX_FILE_BYTES} are read"
    if name == TOPOLOGY and member.bytes > MAX_TOPOLOGY_BYTES:
        return f"its topology has {member.bytes} bytes; at most {MAX_TOPOLOGY_BYTES} are read"
    return "" if isinstance(member.sha256, str) else f"{name} has no hash"


def _is_possible(name: str) -> bool:
    """Say whether a file of this name can exist: the name is Unicode, and no part of it is too long."""
    try:
        return all(len(part.encode()) <= MAX_PART_BYTES for part in _parts(name))
    except UnicodeEncodeError:
        return False


def check_ratio(size: int, manifest: ArchiveManifest) -> None:
    """Check that the files of an archive are not very much larger than the archive: reading them would take too long.

    Args:
        size: Size of the archive in bytes.

    Raises:
        ValueError: The files are too large.
    """
    limit = MAX_RATIO * size + MAX_FREE_BYTES
    if manifest.total_bytes > limit:
        raise broken(reason=f"its {size} bytes would become {manifest.total_bytes}; at most {limit} are read")


def broken(*, reason: str) -> ValueError:
    """Return the error that an archive is broken, with the reason. The caller turns it into R655."""
    return ValueError(reason)
