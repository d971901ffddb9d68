"""Finds the application that the user named: a program in Python or Go, a worker binary, a topology, an archive."""

import importlib.machinery
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from wallaroo.diagnostic.diagnostic import closest
from wallaroo.emit.program import is_file, split_app
from wallaroo_runtime.durable.file import check_open
from wallaroo_runtime.errors import USAGE, WORKER, RunError
from wallaroo_runtime.worker.launch import ELF_BYTES, elf_machine, other_machine

SHOWN = 8  # an error names at most so many programs of a folder
MAIN = "app.py"  # main file of a folder with a program in Python, as `wallaroo new` writes it
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")


class AppKind(Enum):
    """The form of an application argument."""

    PYTHON_FILE = "python file"
    PYTHON_MODULE = "python module"
    GO_DIRECTORY = "go directory"
    BINARY = "worker binary"
    TOPOLOGY = "topology"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class App:
    """An application argument that was found: its form, and the file or directory that it names.

    Attributes:
        path: Absolute path of the file or directory.
        target: Argument from which a Python front-end or worker loads the program; empty for other kinds.
    """

    kind: AppKind
    path: str
    target: str = ""

    @property
    def folder(self) -> Path:
        """Folder of a Python program: the folder of its file, or the folder from which its module is imported."""
        path = Path(self.path)
        if self.kind is AppKind.PYTHON_FILE:
            return path.parent
        return path.parents[split_app(self.target)[0].count(".") + (path.name == "__init__.py")]


def resolve(app: str) -> App:
    """Return the application that an argument names. Nothing is run or imported.

    Args:
        app: A Python file or module, either with `:function`, or the folder of an `app.py`; a Go package directory; a
            worker binary; a topology file (`.json`); an archive (`.tar.gz`).

    Raises:
        RunError: R609 if there is no such application; R616 if this user may not read it; W404 if the binary cannot
            run here.
    """
    path = Path(app)
    target, _ = split_app(app)
    function = app[len(target) :]
    file = Path(target)
    check_open(file)
    if path.suffix == ".json" and path.is_file():
        return App(AppKind.TOPOLOGY, str(path.absolute()))
    if is_archive(path):
        return App(AppKind.ARCHIVE, str(path.absolute()))
    if file.suffix == ".py" and file.is_file():
        return App(AppKind.PYTHON_FILE, str(file.absolute()), str(file.absolute()) + function)
    if path.is_dir() and any(path.glob("*.go")):
        return App(AppKind.GO_DIRECTORY, str(path.absolute()))
    if (inside := path / MAIN).is_file():
        check_open(inside)
        return App(AppKind.PYTHON_FILE, str(inside.absolute()), str(inside.absolute()))
    if path.is_file():
        return _binary(path.absolute())
    if _MODULE.match(target) and not is_file(target):
        module = find_module(target)
        if module:
            return App(AppKind.PYTHON_MODULE, module, target + function)
    raise _no_app(app, _reason(app, path))


def find_module(name: str) -> str:
    """Return the file of a module, as a program that starts here finds it; empty if there is none. Import nothing."""
    search: Iterable[str] | None = [os.getcwd(), *(path or os.getcwd() for path in sys.path)]
    origin = ""
    for part in name.split("."):
        if search is None:
            return ""
        spec = importlib.machinery.PathFinder.find_spec(part, list(search))
        if spec is None:
            return ""
        search = spec.submodule_search_locations
        origin = spec.origin or ""  # a folder without __init__.py can hold modules, but is no module
    return origin


def _binary(path: Path) -> App:
    with path.open("rb") as file:
        head = file.read(ELF_BYTES)
    if machine := elf_machine(head):
        if machine != platform.machine():
            raise RunError([other_machine(str(path), machine)], WORKER)
    elif head[:2] != b"#!":
        raise _no_app(str(path), "the file is none of these")
    if not os.access(path, os.X_OK):
        reason, fix = "it has no execute permission", f"make it executable: `chmod +x {path}`"
        raise RunError.of("W404", WORKER, path=path, reason=reason, fix=fix)
    return App(AppKind.BINARY, str(path))


def _no_app(app: str, reason: str) -> RunError:
    error = RunError.of("R609", USAGE, app=app, reason=reason)
    path = Path(split_app(app)[0])
    is_python = path.suffix == ".py" and (path.parent / MAIN).exists()
    if path.suffix not in (".py", ".go") or is_python or not any(path.parent.glob("*.go")):
        return error
    folder = os.path.relpath(path.parent)
    fix = f"the program in {folder} is in Go, give the folder: `wallaroo run {shlex.quote(folder)}`"
    return RunError([replace(error.diagnostics[0], fix=fix)], USAGE)


def _reason(app: str, path: Path) -> str:
    if path.is_dir():
        return f"the directory has neither a .go file nor {MAIN}"
    return f"there is no such file or module{hint(path) or _programs_in(path.parent)}"


def _programs_in(folder: Path) -> str:
    """Return the clause `; FOLDER has NAMES` about the programs of a folder; empty if it has no programs."""
    try:
        programs = sorted(each.name for each in folder.iterdir() if not each.name.startswith(".") and _is_program(each))
    except OSError:
        return ""
    more = f" and {len(programs) - SHOWN} more" if len(programs) > SHOWN else ""
    where = "this directory" if folder == Path() else str(folder)
    return f"; {where} has {', '.join(programs[:SHOWN])}{more}" if programs else ""


def is_archive(path: Path) -> bool:
    """Return whether a path is a file whose name ends like that of an archive."""
    return path.name.endswith(ARCHIVE_SUFFIXES) and path.is_file()


def _is_program(path: Path) -> bool:
    if path.is_dir():
        return (path / MAIN).is_file() or any(path.glob("*.go"))
    return path.name.endswith((".py", *ARCHIVE_SUFFIXES))


def hint(path: Path) -> str:
    """Return `; did you mean PATH?` if a file or directory has a similar name; else an empty text."""
    folder = path.parent
    try:
        names = [each.name for each in folder.iterdir() if not each.name.startswith(".")]
    except OSError:
        names = []
    # "word_cuont" may be meant to be the module of word_count.py.
    known = {name.removesuffix(".py"): name for name in names if name.endswith(".py")} | {name: name for name in names}
    close = closest(path.name, known)
    return f"; did you mean {folder / known[close]}?" if close else ""
