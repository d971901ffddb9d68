"""`wallaroo new python|go|mixed DIR`: make a project with an application that runs and a test that passes."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.editor import editor_files
from wallaroo_runtime.cli.stamp import print_json
from wallaroo_runtime.errors import USAGE, RunError

TEMPLATES, SUFFIX = Path(__file__).parents[1] / "template", ".template"
IGNORED = {language: "__pycache__/\n.venv/\n" for language in ("python", "mixed")}
NEXT = {"python": ("python -m pytest", "wallaroo run app.py"), "go": ("go test ./...", "wallaroo run .")}
NEXT["mixed"] = NEXT["python"]
GO = {"go": "", "mixed": "words"}  # where the Go program is, which knows by itself what git shall ignore
CASE, COMMON = "cases/words", "common"
FOLDERS = {"words.go": GO["mixed"], **dict.fromkeys(("case.toml", "input.txt", "expected.txt"), CASE)}


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("new", help="make a project: an application and its test", description=__doc__)
    parser.add_argument(
        "language", choices=sorted(NEXT), help="of the application; mixed: Python with a component in Go"
    )
    parser.add_argument(
        "directory", metavar="DIR", help="new or empty, but for .git; the application is named after it"
    )
    parser.add_argument("--json", action="store_true", help="the files as a JSON object; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Write the files, and print what to do next.

    Raises:
        RunError: R734, they cannot be written, or something is there; those of `wallaroo build --init` for Go.
    """
    directory = Path(arguments.directory)
    if arguments.language in GO:
        from wallaroo_runtime.program.init import init
        from wallaroo_runtime.program.sdk import go_command

        go_command()  # before there are files: the next try would find them
    try:
        written = write(arguments.language, directory)
    except OSError as error:
        raise _refused(directory, error.strerror or str(error), "give another directory") from error
    if arguments.language in GO:
        whole = directory.resolve()
        written += [directory / path.relative_to(whole) for path in init(directory / GO[arguments.language])]
    if arguments.json:
        print_json({"files": [str(path) for path in written]})
        return 0
    test, start = NEXT[arguments.language]
    print("\n".join(map(str, written)))
    print(f"next: cd {shlex.quote(arguments.directory)} && {test} && {start}")
    return 0


def write(language: str, directory: Path) -> list[Path]:
    """Write the files of a language into a new directory, or one that is empty but for `.git`; returns them.

    Raises:
        RunError: R734, something is there.
        OSError: They cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if any(each.name != ".git" for each in directory.iterdir()):
        raise _refused(directory, "it is not empty", "give a new directory")
    name = _name_of(directory)
    written = []
    for file, text in editor_files(language).items():
        written.append(_written(directory / file, text))
    found = [template for kind in (language, COMMON) for template in (TEMPLATES / kind).glob(f"*{SUFFIX}")]
    for template in sorted(found, key=lambda template: template.name):
        file = template.name.removesuffix(SUFFIX)
        text = template.read_text(encoding="utf-8").replace("{name}", name)
        written.append(_written(directory / FOLDERS.get(file, "") / file, text))
    if language in IGNORED:
        written.append(_written(directory / ".gitignore", IGNORED[language]))
    return written


def _written(path: Path, text: str) -> Path:
    """Write a file, and its folder where that is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _name_of(directory: Path) -> str:
    """Return a name for the application: it is part of a string literal, and names the checkpoint."""
    letters = "".join(each if each.isalnum() or each in "-_ ." else "-" for each in directory.resolve().name)
    return letters.strip(" .") or "application"


def _refused(directory: Path, reason: str, fix: str) -> RunError:
    return RunError.of("R734", USAGE, path=directory, reason=reason, fix=fix)
