"""Finds the places of declarations, calls and errors in user code, and makes tracebacks of user code only."""

import builtins
import inspect
import linecache
import os
import sys
import sysconfig
import traceback
import warnings
from typing import NamedTuple

from wallaroo.diagnostic.diagnostic import closest

_SDK = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")})
MAX_FRAMES = 20
_lines: dict[tuple[str, str, int, int], int] = {}  # lines of classes, by file, name, and time and size of the file
MAX_TRACEBACK_CHARACTERS = 8000


class Location(NamedTuple):
    """A file and a line; both empty when they are not known."""

    file: str = ""
    line: int = 0

    def shown(self) -> "Location":
        """Return the location for people. A file below the working directory gets a relative path."""
        return Location(relative(self.file, os.getcwd()), self.line) if self.file else self


def relative(file: str, directory: str) -> str:
    """Return the path of `file` relative to `directory`, with forward slashes. A file outside of it is unchanged."""
    directory = os.path.join(os.path.realpath(directory), "")
    real = os.path.realpath(file)
    return real[len(directory) :].replace(os.sep, "/") if real.startswith(directory) else file


def declared_at(component: object) -> Location:
    """Return where a function, a class or the class of an object is declared."""
    target = inspect.unwrap(component) if callable(component) else component
    if inspect.ismethod(target):
        target = target.__func__
    code = getattr(target, "__code__", None)
    if code is not None:
        line = code.co_firstlineno
        line = line if code.co_name == "<lambda>" else _def_line(code.co_filename, line)
        return Location(os.path.abspath(code.co_filename), line)
    cls = target if isinstance(target, type) else type(target)
    try:
        file = inspect.getsourcefile(cls)
        return Location(os.path.abspath(file), _class_line(cls, file)) if file else Location()
    except (OSError, TypeError):
        return Location()


def _class_line(cls: type, file: str) -> int:
    """Return the line of a class. Cache it while the file is unchanged, since Python parses the whole file for it."""
    try:
        status = os.stat(file)
    except OSError:  # e.g. in an archive
        return _parsed_line(cls)
    place = (file, cls.__qualname__, status.st_mtime_ns, status.st_size)
    if place not in _lines:
        _lines[place] = _parsed_line(cls)
    return _lines[place]


def _parsed_line(cls: type) -> int:
    with warnings.catch_warnings():  # Python has shown the module's warnings already when it was imported
        warnings.simplefilter("ignore")
        return inspect.findsource(cls)[1] + 1


def _def_line(file: str, first: int) -> int:
    """Return the line of `def`. A decorated function's code object begins at its first decorator."""
    for line in range(first, first + 20):
        text = linecache.getline(file, line).lstrip()
        if text.startswith(("def ", "async def ")):
            return line
    return first


def called_from() -> Location:
    """Return the place in user code that called into this package."""
    frame = sys._getframe(1)
    while frame is not None:
        if not _is_ours(frame.f_code.co_filename):
            return Location(os.path.abspath(frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return Location()


def raised_at(error: BaseException) -> Location:
    """Return the innermost place in user code that an exception passed through; Python's library is the last choice."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(os.path.abspath(error.filename), error.lineno or 0)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    own = [frame for frame in frames if not _is_library(frame.filename)] or frames
    return Location(os.path.abspath(own[-1].filename), own[-1].lineno or 0) if own else Location()


def user_traceback(error: BaseException) -> str:
    """Return an exception's traceback with only the frames of user code, cut to a readable length."""
    report = traceback.TracebackException.from_exception(error, compact=True)
    _keep_user_frames(report, set())
    lines = list(report.format())
    text = "".join(lines)
    if len(text) > MAX_TRACEBACK_CHARACTERS:
        half = MAX_TRACEBACK_CHARACTERS // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
    return text


def one_line(error: BaseException) -> str:
    """Return type and text of an exception on one line."""
    try:
        text = " ".join(str(error).split())
    except Exception as failure:
        text = f"<its text cannot be made; {type(failure).__name__}>"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:400]


def hint_of(error: BaseException) -> str:
    """Return `; did you mean NAME?` for a misspelt name, a hint for a relative import, or else an empty text.

    Python adds such hints only on its own console, and to exceptions printed by other code only since 3.12.
    """
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "; a file is in no package: name it as a module, PACKAGE.MODULE"
    name = getattr(error, "name", None)
    if not name or error.__traceback__ is None:
        return ""
    if isinstance(error, NameError):
        *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
        known = {*frame.f_locals, *frame.f_globals, *dir(builtins)}
    elif isinstance(error, AttributeError):
        known = set(dir(error.obj))
    else:
        return ""
    near = closest(name, known)
    return f"; did you mean {near}?" if near else ""


def _is_ours(file: str) -> bool:
    return os.path.abspath(file).startswith(_SDK) or file.startswith("<frozen ") or file.startswith("<stage ")


def _is_library(file: str) -> bool:
    path = os.path.abspath(file)
    return path.startswith(_LIBRARY) and not {"site-packages", "dist-packages"} & set(path.split(os.sep))


def _keep_user_frames(report: traceback.TracebackException, seen: set[int]) -> None:
    if id(report) in seen:
        return
    seen.add(id(report))
    kept = [frame for frame in report.stack if not _is_ours(frame.filename)]
    if len(kept) > MAX_FRAMES:
        kept = kept[: MAX_FRAMES // 2] + kept[-MAX_FRAMES // 2 :]
    report.stack = traceback.StackSummary.from_list(kept)
    for linked in (report.__cause__, report.__context__):
        if linked is not None:
            _keep_user_frames(linked, seen)
