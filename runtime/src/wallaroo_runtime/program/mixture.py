"""Refuses programs that import the SDK by both of its paths: these are two SDKs with types of their own."""

from collections.abc import Iterable
from pathlib import Path

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.program.go import run_go
from wallaroo_runtime.program.import_path import imports_of, root_of

_PACKAGE = '{{.ImportPath}}\t{{.Dir}}\t{{join .Imports " "}}'


def refuse_in(directory: Path) -> None:
    """Refuse a package whose files, tests among them, import the SDK by both paths.

    Raises:
        RunError: W433.
    """
    files = sorted(directory.glob("*.go"))
    _refuse((file.name, file, path) for file in files for path in imports_of(file))


def refuse_below(go: str, directory: Path, overlay: Path, environment: dict[str, str]) -> None:
    """Refuse a program that imports the SDK by both paths, itself or in a package that it depends on.

    Raises:
        RunError: W433; or W407, R697 and R796 when its packages cannot be listed.
    """
    listing = [go, "list", "-e", "-deps", "-overlay", str(overlay), "-f", _PACKAGE, "."]
    lines = [line.split("\t") for line in run_go(listing, directory, environment).splitlines()]
    packages = [(name, Path(place), paths.split()) for name, place, paths in lines if not root_of(name)]
    # The program's own package comes last; it is the one that the others have to agree with.
    _refuse((name, place, path) for name, place, paths in reversed(packages) for path in paths if root_of(path))


def _refuse(imports: Iterable[tuple[str, Path, str]]) -> None:
    """Refuse files or packages of which one imports by another path than the first: name, place and path of each."""
    found = list(imports)
    other = next((each for each in found if root_of(each[2]) != root_of(found[0][2])), None)
    if other is None:
        return
    (name, _, path), (other_name, place, other_path) = found[0], other
    file, line = _place(place, other_path)
    values = {"name": name, "root": root_of(path), "other": other_name, "other_root": root_of(other_path)}
    raise RunError([Diagnostic.of("W433", file=str(file), line=line, **values)], WORKER)


def _place(place: Path, path: str) -> tuple[Path, int]:
    """Return the file and line of an import, in a file or in a directory of files."""
    for file in sorted(place.glob("*.go")) if place.is_dir() else [place]:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        if line := next((number for number, text in enumerate(lines, 1) if f'"{path}"' in text), 0):
            return file, line
    return place, 0
