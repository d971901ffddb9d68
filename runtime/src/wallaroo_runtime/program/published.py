"""The Go SDK as its published module: the same files under the path that `go get` knows.

There is one source, `api/go`. `make go-module` writes from it what is published. A program that imports the published
path, but requires no version of it, is built with a copy in the user's cache.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

from wallaroo_runtime.program.import_path import MODULE, PUBLISHED
from wallaroo_runtime.program.sdk import sdk_directory
from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.lock import SHARE, locked

TESTS = ("*_test.go", "testdata/*", "*/testdata/*")
# A path within a string or an import; the name of the package, as in `wallarooapi.Computation`, stays.
_IN_GO = re.compile(rf'"{MODULE}(?=/|"|\.")')
# The options of a file in its raw descriptor: field 8, its length, in it field 11 (go_package) with its length.
_IN_DESCRIPTOR = re.compile(rf"B\\x..Z\\x..{MODULE}(/internal/[a-z]+)b\\x06proto3")
_IN_MOD = re.compile(rf"(?<![\w./-]){MODULE}(?=[/\s])")


def module_files(sdk: Path, path: str, left_out: tuple[str, ...] = TESTS) -> dict[str, bytes]:
    """Return the files of the SDK's modules under another path, by their names relative to the outer module.

    Args:
        sdk: Directory of module `wallarooapi`.
        path: Of the module; the one for Goka's programs is below it.
        left_out: Patterns of names.
    """
    found = {}
    for file in sorted(each for each in sdk.rglob("*") if each.is_file()):
        name = file.relative_to(sdk).as_posix()
        if not any(fnmatch(name, pattern) for pattern in left_out):
            found[name] = _renamed(name, file.read_bytes(), path)
    return found


def published_directory() -> Path:
    """Return the directory of a copy of this installation's SDK under its published path, in the user's cache.

    It is named after its content, so that another version of the SDK gets another one. What is missing or was changed
    in it is written again.

    Raises:
        RunError: I901, the installation is not complete.
    """
    files = module_files(sdk_directory(), PUBLISHED)
    content = hashlib.sha256()
    for name, data in files.items():
        content.update(f"{name}\0{len(data)}\0".encode() + data)
    root = copies_directory().parent
    directory = copies_directory() / content.hexdigest()[:32]
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(root / "lock", SHARE):  # `wallaroo gc` removes nothing meanwhile
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_files(directory, files)
        os.utime(directory)  # not unused, then
    return directory


def copies_directory() -> Path:
    """Return where the copies of the SDK are."""
    return cache_directory() / "go" / "sdk"


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write files that differ from what is there; each is whole at any time."""
    for name, data in files.items():
        target = directory / name
        if target.is_file() and target.read_bytes() == data:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as part:
            part.write(data)
        Path(part.name).chmod(0o644)
        Path(part.name).replace(target)


def _renamed(name: str, data: bytes, path: str) -> bytes:
    if name.endswith(".go"):
        text = _IN_DESCRIPTOR.sub(lambda found: _options(path + found[1]), data.decode())
        return _IN_GO.sub(f'"{path}', text).encode()
    if name.endswith("go.mod"):
        return _IN_MOD.sub(path, data.decode()).encode()
    return data


def _options(package: str) -> str:
    """Return the options of a raw descriptor with a go_package, as part of a string literal of Go."""
    field = f"Z{_length(len(package))}{package}"
    size = 1 + len(_varint(len(package))) + len(package)
    return f"B{_length(size)}{field}b\\x06proto3"


def _length(number: int) -> str:
    return "".join(f"\\x{byte:02x}" for byte in _varint(number))


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7])
