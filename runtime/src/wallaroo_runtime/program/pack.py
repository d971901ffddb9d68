"""Packs an application into one file that runs on other machines: `wallaroo pack`."""

import gzip
import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from wallaroo.emit.program import split_app
from wallaroo_runtime.archive.archive import (
    ARCHITECTURES,
    COPY_BYTES,
    file_digest,
)
from wallaroo_runtime.archive.manifest import MANIFEST, MAX_FILE_BYTES, TOPOLOGY, ArchiveManifest, Member, check_ratio
from wallaroo_runtime.archive.placeholder import ARCHIVE_PLACEHOLDER, PLATFORM_PLACEHOLDER, SITE, this_platform
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.app import App, AppKind, resolve
from wallaroo_runtime.program.build import build
from wallaroo_runtime.program.emit import emit_all, say_nothing
from wallaroo_runtime.program.requirements import fetch_wheels, python_version
from wallaroo_runtime.topology.canonical import canonical_text
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import PROTOCOL_VERSION
from wallaroo_runtime.worker.spec import PYTHON_PLACEHOLDER

RUNTIME = "wallaroo-spark-runtime"
REQUIREMENTS = "requirements.txt"
SOURCE = "source"
LIBRARIES = "libraries"
BIN = "bin"
_PROGRAM = re.compile(rf"({LIBRARIES}/\d+/)?{BIN}/.*")
LEFT_OUT = {"__pycache__", "node_modules"}
COMPRESSION = 6


@dataclass(frozen=True, slots=True)
class PackOptions:
    """The options of `wallaroo pack`.

    Attributes:
        app: A Python file or module, a Go package directory, or a worker binary.
        output: Path of the archive, which is replaced if it exists.
        args: Arguments of the application's own command line.
        architectures: Processors for Go programs and Python wheels: `amd64`, `arm64`.
        requirements: Requirements of a Python program; None for `requirements.txt` in its directory, if it exists.
        include: Patterns of further files in the program's directory, as `Path.glob` reads them.
    """

    app: str
    output: Path
    args: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ARCHITECTURES
    requirements: Path | None = None
    include: tuple[str, ...] = ()


def pack(options: PackOptions, tell: Callable[[str], None] = say_nothing) -> ArchiveManifest:
    """Write the archive of an application. Equal input gives equal bytes.

    Args:
        tell: Called with a text before work that may take minutes.

    Returns:
        The manifest of the archive.

    Raises:
        RunError: The application is not correct or does not compile; R658 if it cannot be packed.
    """
    app = resolve(options.app)
    if app.kind in (AppKind.TOPOLOGY, AppKind.ARCHIVE):
        raise _unpackable(Path(app.path), "it is no program", "give the program that emitted the topology")
    with tempfile.TemporaryDirectory(prefix="wallaroo-pack-") as folder:
        work = Path(folder)
        document, libraries = emit_all(app, options.args, tell=tell)
        packed = [_program(app, options, "", tell=tell)]
        for number, (name, library) in enumerate(libraries.items(), 1):
            packed.append(_program(library, options, f"{LIBRARIES}/{number}/", name, tell=tell))
        files = {name: file for program in packed for name, file in program.files.items()}
        if any(program.requirements for program in packed):
            tell("fetching what its requirements name")
        files |= _dependencies(app, packed, options, work)
        platforms = _platforms(options.output, packed)
        for worker in document["workers"]:
            (program,) = (program for program in packed if program.worker == worker["name"])
            worker["command"], worker["directory"] = program.command, program.directory
        topology = work / TOPOLOGY
        topology.write_text(canonical_text(load_document(document).document), encoding="utf-8")
        files[TOPOLOGY] = topology
        python = python_version() if any(name.startswith(f"{SITE}/") for name in files) else ""
        manifest = ArchiveManifest(
            runtime_version=metadata.version(RUNTIME),
            protocol_version=PROTOCOL_VERSION,
            platforms=platforms,
            python=python,
            members=tuple(_member(name, files[name]) for name in sorted(files)),
        )
        try:
            manifest.check()
        except ValueError as error:
            raise _unpackable(Path(app.path), str(error), "rename such a file, or leave it out") from error
        tell(f"writing {options.output}")
        _write(options.output, manifest, files)
    return manifest


@dataclass(frozen=True, slots=True)
class PackedProgram:
    """One of the programs in an archive: the application's main program, or a library.

    Attributes:
        worker: Name of the program's worker.
        files: Files of the program, by their names in the archive.
        command: Command that starts the worker.
        directory: Working directory of the worker.
        platforms: Platforms on which the program runs; empty for all platforms.
        requirements: File with the requirements of a Python program.
    """

    worker: str
    files: Mapping[str, Path]
    command: list[str]
    directory: str
    platforms: tuple[str, ...] = ()
    requirements: Path | None = None


def _program(
    app: App, options: PackOptions, prefix: str, worker: str = "main", *, tell: Callable[[str], None]
) -> PackedProgram:
    if app.kind in (AppKind.PYTHON_FILE, AppKind.PYTHON_MODULE):
        return _python(app, options, prefix, worker)
    return _binaries(app, options, prefix, worker, tell=tell)


def _dependencies(app: App, packed: Sequence[PackedProgram], options: PackOptions, work: Path) -> dict[str, Path]:
    """Return the wheels for the Python programs' requirements, and the SDK's files; empty without requirements."""
    wanted = {program.requirements for program in packed if program.requirements is not None}
    if not wanted:
        return {}
    if len(wanted) > 1:
        names = " and ".join(sorted(map(str, wanted)))
        raise _unpackable(Path(app.path), f"its programs have {names}", "give one file for all with --requirements")
    platforms = tuple(f"linux-{architecture}" for architecture in sorted(options.architectures))
    wheels = fetch_wheels(wanted.pop(), platforms, work / "wheels")
    return wheels | {f"{SITE}/wallaroo/{name}": path for name, path in _sdk().items()}


def _platforms(output: Path, packed: Sequence[PackedProgram]) -> tuple[str, ...]:
    """Return the platforms on which all programs run; empty for all platforms."""
    limited = [program.platforms for program in packed if program.platforms]
    common = [name for name in limited[0] if all(name in each for each in limited)] if limited else []
    if limited and not common:
        each = "; ".join(f"{program.worker}: {', '.join(program.platforms)}" for program in packed if program.platforms)
        raise _unpackable(output, f"its workers have no platform in common ({each})", "build them for the same ones")
    return tuple(common)


def _in_archive(name: str) -> str:
    return f"{ARCHIVE_PLACEHOLDER}/{name}".rstrip("/")


def _python(app: App, options: PackOptions, prefix: str, worker: str) -> PackedProgram:
    target, function = split_app(app.target)
    suffix = f":{function}" if app.target != target else ""
    source = f"{prefix}{SOURCE}"
    if app.kind is AppKind.PYTHON_FILE:
        target = _in_archive(f"{source}/{Path(app.path).name}")
    command = [PYTHON_PLACEHOLDER, "-m", "wallaroo.worker", target + suffix]
    include, directory = options.include if not prefix else (), app.folder
    files = {f"{source}/{path.relative_to(directory)}": path for path in _sources(directory, include)}
    usual = directory / REQUIREMENTS
    requirements = options.requirements or (usual if usual.is_file() else None)
    platforms = tuple(f"linux-{architecture}" for architecture in sorted(options.architectures)) if requirements else ()
    return PackedProgram(worker, files, command, _in_archive(source), platforms, requirements)


def _sources(directory: Path, include: Sequence[str]) -> set[Path]:
    """Return the Python files of a directory, and the other files to include."""
    sources = set()
    for path in directory.rglob("*.py"):
        folders = path.relative_to(directory).parts[:-1]
        parents = [directory.joinpath(*folders[: number + 1]) for number in range(len(folders))]
        is_ours = not any(name.startswith(".") or name in LEFT_OUT for name in folders)
        if is_ours and not any((parent / "pyvenv.cfg").exists() for parent in parents):
            sources.add(path)
    for pattern in include:
        more = {path for path in directory.glob(pattern) if path.is_file()}
        if not more:
            raise _unpackable(directory, f"no file matches --include {pattern}", "give a pattern of files in it")
        sources |= more
    for path in sources:
        if not path.resolve().is_relative_to(directory.resolve()):
            fix = f"put {path.resolve()} itself into the directory"
            raise _unpackable(directory, f"{path} is a link to a file outside of it", fix)
    return sources


def _sdk() -> dict[str, Path]:
    """Return the files of the Python SDK that a worker imports."""
    spec = find_spec("wallaroo")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent
    files = [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(root)): path for path in files}


def _binaries(
    app: App, options: PackOptions, prefix: str, worker: str, *, tell: Callable[[str], None]
) -> PackedProgram:
    if app.kind is AppKind.GO_DIRECTORY:
        architectures = sorted(options.architectures)
        tell(f"compiling Go in {app.path} for {' and '.join(architectures)}; --arch limits it to fewer")
        compile_for = partial(build, Path(app.path), goos="linux", static=True)
        with ThreadPoolExecutor() as pool:  # each thread waits for its own compiler
            binaries = pool.map(lambda architecture: compile_for(goarch=architecture), architectures)
            built = {f"linux-{each}": path for each, path in zip(architectures, binaries, strict=True)}
    else:
        built = {this_platform(): Path(app.path)}
    files = {f"{prefix}{BIN}/{platform}/worker": path for platform, path in built.items()}
    command = [_in_archive(f"{prefix}{BIN}/{PLATFORM_PLACEHOLDER}/worker")]
    return PackedProgram(worker, files, command, _in_archive(prefix), tuple(built))


def _member(name: str, path: Path) -> Member:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        reason = f"{path} has {size} bytes; at most {MAX_FILE_BYTES} are packed"
        raise _unpackable(path, reason, "let the program fetch such files from where they are kept")
    return Member(name, size, file_digest(path), bool(_PROGRAM.fullmatch(name)))


def _write(output: Path, manifest: ArchiveManifest, files: Mapping[str, Path]) -> None:
    temporary = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        temporary.unlink(missing_ok=True)
        # Name and time of the file and facts of this machine are left out, so the bytes depend on the content alone.
        with (
            temporary.open("xb") as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=COMPRESSION, mtime=0) as stream,
            tarfile.open(fileobj=stream, mode="w|", bufsize=COPY_BYTES, format=tarfile.GNU_FORMAT) as tar,
        ):
            text = json.dumps(manifest.to_json(), ensure_ascii=False, indent=1).encode("utf-8")
            tar.addfile(_entry(Member(MANIFEST, len(text), "")), io.BytesIO(text))
            for member in manifest.members:
                _add(tar, member, files[member.name])
        check_ratio(temporary.stat().st_size, manifest)
        temporary.replace(output)
    except OSError as error:
        raise _unpackable(output, error.strerror or str(error), "give another file with -o") from error
    except ValueError as error:
        raise _unpackable(output, str(error), "leave out files of nothing but zeros") from error
    finally:
        temporary.unlink(missing_ok=True)


def _add(tar: tarfile.TarFile, member: Member, path: Path) -> None:
    with path.open("rb") as content:
        tar.addfile(_entry(member), content)


def _entry(member: Member) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(member.name)
    entry.size, entry.mode = member.bytes, 0o755 if member.is_executable else 0o644
    return entry


def _unpackable(path: Path, reason: str, fix: str) -> RunError:
    return RunError.of("R658", path=path, reason=reason, fix=fix)
