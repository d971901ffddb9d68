"""Finds the directory of a checkpoint, by the name of a program or run, and chooses one for a new checkpoint."""

import math
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Kind
from wallaroo_runtime.checkpoint.registry import chosen_for, digest, running, running_with, state_directory
from wallaroo_runtime.durable.file import check_open, refuse_links
from wallaroo_runtime.errors import USAGE, RunError, count
from wallaroo_runtime.program.app import hint, resolve

MANIFEST = "application.json"
WORKERS = "workers"  # folder of the user's unpacked workers
SPARK = "spark"  # name of Spark's own checkpoint, until `rescale` makes another one


def default_directory(application: str, language: str, app: Path) -> Path:
    """Return the directory of the checkpoint for a run without the option `--checkpoint`.

    Tutorials share application names, so the name of the directory has the language and a digest of the program's path.

    Args:
        application: Name of the application.
        language: Language of its first worker.
        app: File or directory of the program.
    """
    return state_directory() / f"{slug(application)}-{language}-{digest(app)}"


def find_directory(text: str) -> Path:
    """Return the checkpoint that a user names on a command line: by its directory, its program, or the name of a run.

    Raises:
        RunError: R616 if nothing has this name, it has no checkpoint, or this user may not read it; R715 if it has,
            or stands for, several; R711 if the checkpoint has links.
    """
    if "://" in text:
        fix = "give the application's name, or the directory on the driver's machine: `wallaroo ps` shows both"
        raise RunError.of("R715", USAGE, path=text, reason="this command takes a name or a directory, no URL", fix=fix)
    path = Path(text)
    check_open(path)
    if (path / MANIFEST).is_file() or str(path.absolute()) in {each["checkpoint"] for each in running()}:
        refuse_links(path.absolute(), [WORKERS])
        return path.absolute()
    app = _program(text, path)
    if app is not None and (checkpoint := _of_program(text, app)) is not None:
        return checkpoint
    if (checkpoint := running_directory(text)) is not None:
        return checkpoint
    if inside := [each.parent for each in path.absolute().glob(f"[!.]*/{MANIFEST}")]:
        raise _several(text, f"this directory has {count(len(inside), 'checkpoint')} in it", inside)
    reason = f"there is no such checkpoint or program, and no application of this name runs{hint(path)}{what_runs()}"
    if app is not None:
        reason = f"it is no checkpoint, and no run of it has left one; --engine memory leaves none{what_runs()}"
    raise RunError.of("R616", USAGE, path=text, done="read", reason=reason)


def running_directory(name: str) -> Path | None:
    """Return the checkpoint of the running application with this name; None if no such application runs.

    Raises:
        RunError: R715 if several run.
    """
    checkpoints = [Path(each["checkpoint"]) for each in running() if each["application"] == name]
    if len(checkpoints) > 1:
        raise _several(name, f"{len(checkpoints)} applications of this name run", checkpoints)
    return checkpoints[0] if checkpoints else None


def _several(text: str, reason: str, checkpoints: Iterable[Path]) -> RunError:
    """Return the error for a text that stands for several checkpoints. It lists them, first those used last."""
    choices = tuple(map(str, sorted(checkpoints, key=_last_use, reverse=True)))
    error = RunError.of("R715", USAGE, path=text, reason=reason, fix=f"give one of {', '.join(choices)}")
    error.given, error.choices = text, choices
    return error


def _last_use(checkpoint: Path) -> float:
    with suppress(OSError):
        return (checkpoint / MANIFEST).stat().st_mtime
    return math.inf  # a run that has just begun


def what_runs() -> str:
    """Return the end of an error's text: a list of the running applications; empty if none runs."""
    names = sorted({f'"{each["application"]}"' for each in running()})
    return f"; these run: {', '.join(names)}" if names else ""


def _of_program(text: str, app: Path) -> Path | None:
    """Return the checkpoint of a program's runs; None if it has none. Raise R715 if it has several."""
    places = [*state_directory().glob(f"[!.]*-{digest(app)}"), *chosen_for(app)]
    checkpoints = sorted({place for place in places if (place / MANIFEST).is_file()} | running_with(app))
    if not checkpoints:
        return None
    if len(checkpoints) > 1:
        raise _several(text, f"this program has {len(checkpoints)} checkpoints", checkpoints)
    refuse_links(checkpoints[0], [WORKERS])
    return checkpoints[0]


def _program(text: str, path: Path) -> Path | None:
    """Return the path of the program that `text` names. If it names none: `path` if that exists, else None."""
    try:
        return Path(resolve(text).path)
    except RunError as error:
        if path.exists():
            return path
        if error.kind is not Kind.ABSENT:
            raise
        return None


def slug(name: str) -> str:
    """Return a name as part of a file name: lower-case ASCII letters, digits and hyphens.

    Example:
        >>> slug("Word Count: é!")
        'word-count-e'
    """
    text = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")[:60] or "application"
