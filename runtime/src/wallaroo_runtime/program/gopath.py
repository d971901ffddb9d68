"""Finds the packages that a Go program imports by place: from the folder `src`, as with GOPATH, or from `vendor`.

Since version 1.16 Go finds packages only by modules, and in a workspace it uses only the workspace's vendor folder. So
each package that a program imports by place becomes a module in the workspace of the build. Packages of the standard
library and of the SDK come first, then packages of the program's modules, as with `go`.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from wallaroo_runtime.program.import_path import is_in

_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|("[^"\n]*"|`[^`]*`)|(\bimport\b)|([()])|(\b(?:func|type|var|const)\b)', re.DOTALL
)


def packages_by_place(
    program: Path, modules: Mapping[str, Path], standard: Path, sdk: Collection[str], *, has_module: bool
) -> dict[str, Path]:
    """Return the directories of packages that a program imports from `src` or `vendor`, by their import paths.

    Args:
        program: The directory of the main package.
        modules: The directories of the program's modules, by their paths.
        standard: The directory of the standard library.
        sdk: Paths of the SDK's module and of the modules that it needs.
        has_module: Whether the program has a go.mod. If so, a path that begins with a host belongs to a module, unless
            the package is vendored.
    """
    packages: dict[str, Path] = {}
    seen, left = {program}, [program]
    while left:
        folder = left.pop()
        for path in _imports(folder):
            if path in packages or (standard / path).is_dir() or any(is_in(path, root) for root in sdk):
                continue
            own = _in_modules(path, modules)
            directory = own or _place(path, folder, program, has_module=has_module)
            if directory is None:
                continue
            if own is None or _is_nested(own, modules.values()):
                packages[path] = directory
            if directory not in seen:
                seen.add(directory)
                left.append(directory)
    return packages


def _in_modules(path: str, modules: Mapping[str, Path]) -> Path | None:
    """Return the directory of a package in the program's modules; None if no module has the package."""
    for root in sorted(modules, key=len, reverse=True):
        if is_in(path, root) and _has_go(directory := modules[root] / path[len(root) + 1 :]):
            return directory
    return None


def _is_nested(package: Path, roots: Collection[Path]) -> bool:
    """Return whether a package is in another module than the program, by the nearest go.mod above the package."""
    nearest = next(above for above in (package, *package.parents) if above in roots or (above / "go.mod").is_file())
    return nearest not in roots


def _place(path: str, folder: Path, program: Path, *, has_module: bool) -> Path | None:
    """Return the directory in `src` or `vendor` of a package that a file in `folder` imports; None if there is none."""
    for above in (folder, *folder.parents):
        if _has_go(directory := above / "vendor" / path):
            return directory
    if has_module and "." in path.partition("/")[0]:
        return None
    source = next((above for above in program.parents if above.name == "src"), program.parent)
    return directory if _has_go(directory := source / path) else None


def _has_go(folder: Path) -> bool:
    return folder.is_dir() and any(folder.glob("*.go"))


def _imports(folder: Path) -> Iterator[str]:
    """Yield the paths that the Go files of a package import, without its tests."""
    for file in sorted(folder.glob("*.go")):
        if file.name.endswith("_test.go"):
            continue
        yield from imports_of(file.read_text(encoding="utf-8", errors="replace"))


def imports_of(code: str) -> Iterator[str]:
    """Yield the paths that a Go file imports.

    Example:
        >>> list(imports_of('package p; import ("fmt"; l "app/lib"); var x = "y"'))
        ['fmt', 'app/lib']
    """
    is_import, is_open = False, False
    for text, keyword, bracket, other in _CODE.findall(code):
        if other:
            return  # no imports can follow
        if keyword:
            is_import = True
        elif bracket:
            is_open = bracket == "("
            is_import = is_import and is_open
        elif text and is_import:
            if re.fullmatch(r"[^\s./\\][^\s\\]*", path := text[1:-1]) and ".." not in path.split("/"):
                yield path
            is_import = is_open
