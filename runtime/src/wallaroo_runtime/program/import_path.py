"""Recognizes packages of the Go SDK by their import paths, and finds the SDK's modules that a program imports."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

MODULE = "wallarooapi"
NESTED = ("goka", "otel")  # folders of the SDK that are separate modules, because they have many dependencies
_IMPORT = re.compile(rf'"{MODULE}(?:/([^/"\s]+)[^"\s]*)?"')


def is_in(path: str, root: str) -> bool:
    """Return whether the path of a package or module is `root`, or below `root`."""
    return f"{path}/".startswith(f"{root}/")


def is_sdk(path: str) -> bool:
    """Return whether a module or package belongs to the SDK.

    Example:
        >>> is_sdk("wallarooapi/goka"), is_sdk("wallarooapis/goka")
        (True, False)
    """
    return is_in(path, MODULE)


def nested_in(files: Iterable[Path]) -> set[str]:
    """Return the names of the SDK's nested modules (`NESTED`) that Go files import."""
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in files)
    return {name for text in texts for name in _IMPORT.findall(text)}.intersection(NESTED)


def go_files(directory: Path) -> Iterator[Path]:
    """Yield the Go files of a module."""
    for folder, names, files in os.walk(directory):
        names[:] = [
            name for name in names if not name.startswith((".", "_")) and name not in ("testdata", "node_modules")
        ]
        yield from (Path(folder) / name for name in files if name.endswith(".go"))
