"""The two paths by which Go programs import the SDK: that of Wallaroo's tutorials, and that of its published module."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

MODULE = "wallarooapi"
# Where `go get` finds the SDK. It has no home yet: its host is below a top-level domain that nobody can register
# (RFC 2606), so that no go command fetches the module of a stranger. docs/go-modules.md names it.
PUBLISHED = "wallaroo.invalid/wallarooapi"
NESTED = ("goka", "otel")  # folders of the SDK that are modules of their own, for their many dependencies
_IMPORT = re.compile(rf'"((?:{re.escape(MODULE)}|{re.escape(PUBLISHED)})(?:/[^"\s]*)?)"')


def root_of(path: str) -> str:
    """Return which of the two paths a module or package of the SDK has; empty: it is not of the SDK.

    Example:
        >>> root_of("wallarooapi/goka"), root_of("wallaroo.invalid/wallarooapi"), root_of("wallarooapis/goka")
        ('wallarooapi', 'wallaroo.invalid/wallarooapi', '')
    """
    return next((root for root in (MODULE, PUBLISHED) if f"{path}/".startswith(f"{root}/")), "")


def imports_of(file: Path) -> list[str]:
    """Return the packages of the SDK that a Go file imports."""
    return _IMPORT.findall(file.read_text(encoding="utf-8", errors="replace"))


def imported(files: Iterable[Path]) -> set[str]:
    """Return the modules of the SDK that Go files import, by their paths."""
    return {_module_of(path) for file in files for path in imports_of(file)}


def _module_of(package: str) -> str:
    root = root_of(package)
    modules = (f"{root}/{name}" for name in NESTED)
    return next((module for module in modules if f"{package}/".startswith(f"{module}/")), root)


def import_path(directory: Path, module: Path) -> str:
    """Return the path by which a program imports the SDK: as its main package has it, else as its module has it."""
    main = [file for file in directory.glob("*.go") if not file.name.endswith("_test.go")]
    found = imported(main) or imported(go_files(module))
    return PUBLISHED if found and all(root_of(path) == PUBLISHED for path in found) else MODULE


def go_files(directory: Path) -> Iterator[Path]:
    """Yield the Go files of a module."""
    for folder, names, files in os.walk(directory):
        names[:] = [
            name for name in names if not name.startswith((".", "_")) and name not in ("testdata", "node_modules")
        ]
        yield from (Path(folder) / name for name in files if name.endswith(".go"))
