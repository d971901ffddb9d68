"""Detects changes of a program's source files, for a run that restarts when the program changes."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.app import AppKind, resolve
from wallaroo_runtime.program.module import find_module

LOOK_S = 0.3
MOST_FILES = 10_000
PYTHON, GO = {".py"}, {".go", ".mod", ".sum", ".work"}
NEVER = {"__pycache__", "node_modules", "vendor", "testdata"}


class ProgramFiles:
    """Detects changes of a program's source files since the program was loaded.

    A Python program has the Python files in its folder, and in the folders below, down to folders without Python files.
    For a module, the folder is the one from which the module is imported. A Go program has the Go files of its module.
    A worker binary, topology or archive is one file.

    Args:
        app: The application, as `resolve` takes it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     program = Path(folder, "app.py")
        ...     _ = program.write_text("first")
        ...     files = ProgramFiles(str(program))
        ...     before = files.have_changed(settle_s=0.0)
        ...     _ = program.write_text("the second")
        ...     before, files.have_changed(settle_s=0.0), files.have_changed(settle_s=0.0)
        (False, True, False)
    """

    def __init__(self, app: str) -> None:
        self._app, self._looked_at = app, time.monotonic()
        self._loaded = self._last = file_states(app)

    def have_changed(self, settle_s: float = LOOK_S) -> bool:
        """Return True once after each change of the files, as soon as no file is being written.

        Args:
            settle_s: Seconds without a further change after which the files count as written; least time between two
                checks.
        """
        if time.monotonic() - self._looked_at < settle_s:
            return False
        before, self._last, self._looked_at = self._last, file_states(self._app), time.monotonic()
        if self._last == self._loaded or (settle_s and self._last != before):
            return False
        self._loaded = self._last
        return True


def file_states(app: str) -> dict[str, tuple[int, int]]:
    """Return time of change and size of each file of a program, by path; empty if there is no such program now."""
    states = {}
    try:
        for path in _files(app):
            with suppress(OSError):  # the file was removed meanwhile, or is a broken link
                status = path.stat()
                states[str(path)] = (status.st_mtime_ns, status.st_size)
    except (OSError, RunError):  # an editor may replace the file in two steps
        return {}
    return states


def _files(app: str) -> Iterator[Path]:
    program = resolve(app)
    path = Path(program.path)
    if program.kind in (AppKind.PYTHON_FILE, AppKind.PYTHON_MODULE):
        yield from _of_folder(program.folder, PYTHON, needs_some=True)
    elif program.kind is AppKind.GO_DIRECTORY:
        yield from _of_folder(find_module(path) or path, GO, needs_some=False)
    else:
        yield path


def _of_folder(root: Path, suffixes: set[str], *, needs_some: bool) -> Iterator[Path]:
    """Yield the files below a folder that end in one of the suffixes, at most 10,000.

    Args:
        root: The folder.
        suffixes: Suffixes of the files.
        needs_some: Whether to leave out lower folders without such a file, with everything in them.
    """
    count = 0
    for folder, folders, names in os.walk(root):
        sources = [name for name in names if Path(name).suffix in suffixes and not name.startswith(".")]
        if needs_some and not sources and folder != str(root):
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".") and name not in NEVER]
        for name in sources:
            count += 1
            if count > MOST_FILES:
                return
            yield Path(folder, name)
