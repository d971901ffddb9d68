"""`wallaroo new python|go|mixed DIR`: make a project with an application that runs and a test that passes.

By default lines come in over TCP. With --kafka the application reads and writes topics. With --pyspark, a PySpark job
runs the application's steps, which are in Python unless go is given.
"""

import argparse
import shlex
import shutil
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.errors import USAGE, RunError

TEMPLATES, SUFFIX = Path(__file__).parents[1] / "template", ".template"
IGNORED = {kind: "__pycache__/\n.venv/\n" for kind in ("python", "mixed", "kafka_python", "pyspark_python")}
DEBUG = "`breakpoint()`\nstops in the terminal of `wallaroo run app.py --debug`."
WORK = "`go.work`\nnames the SDK of this machine. git ignores it: run `wallaroo build --init` on another."
MARKS, PYTEST, GO_TEST = ("{app}", "{program}", "{tests}", "{more}"), "python -m pytest", "go test ./..."
TEXTS = {  # in the place of the marks in templates
    "python": ("app.py", "`app.py`", PYTEST, DEBUG),
    "go": (".", "`main.go`", GO_TEST, WORK),
    "mixed": ("app.py", "`app.py`, a computation in Go\nin `words/words.go`", PYTEST, DEBUG),
    "kafka_python": ("app.py", "`app.py`", PYTEST, DEBUG),
    "kafka_go": (".", "`main.go`", GO_TEST, WORK),
    "pyspark_python": ("app.py", "`app.py`", PYTEST, ""),
    "pyspark_go": (".", "`main.go`", GO_TEST, ""),
}
# Directory of the Go program. `init` writes its .gitignore.
GO = {"go": "", "mixed": "words", "kafka_go": "", "pyspark_go": ""}
EXAMPLES = ('"Word count"', '"Totals"', '"alerts"')  # templates are programs of the tutorial, which have these names
CASE, COMMON, KAFKA, PYSPARK = "cases/first", "common", "kafka", "pyspark"
LANGUAGES = ("go", "mixed", "python")
FOLDERS = {"words.go": GO["mixed"], **dict.fromkeys(("case.toml", "input.txt", "expected.txt"), CASE)}


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("new", help="make a project: an application and its test", description=__doc__)
    parser.add_argument(
        "language", nargs="?", choices=LANGUAGES, help="of the application; mixed: Python with a component in Go"
    )
    parser.add_argument(
        "directory", metavar="DIR", help="new or empty, but for .git; the application is named after it"
    )
    forms = parser.add_mutually_exclusive_group()
    for form, text in ((KAFKA, "an application between topics of Kafka"), (PYSPARK, "one in a PySpark job of its own")):
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, default="", help=text)
    parser.add_argument("--json", action="store_true", help="the files as a JSON object; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Write the files of a new project, and print the next steps.

    Raises:
        RunError: R608 if there is no such project; R734 if files cannot be written, or the directory is not empty; for
            Go also the errors of `wallaroo build --init`.
    """
    if arguments.language is None and arguments.directory in LANGUAGES:
        what = " ".join(filter(None, ("new", arguments.form and f"--{arguments.form}", arguments.directory)))
        raise wrong_usage(reason="new has no directory", fix=f"give one, e.g. `wallaroo {what} shop`")
    directory, kind = Path(arguments.directory), kind_of(arguments.language, arguments.form)
    if kind in GO:
        from wallaroo_runtime.program.init import init
        from wallaroo_runtime.program.sdk import go_command

        go_command()  # before files are written, which would stop the next attempt
    try:
        written = write(kind, directory)
    except OSError as error:
        raise _refused(directory, error.strerror or str(error), "give another directory") from error
    if kind in GO:
        try:
            paths = init(directory / GO[kind])
        except RunError:
            _remove(written, directory)  # files would stop the next attempt
            raise
        written += [_shown(path, directory) for path in paths]
    if arguments.json:
        print_json({"files": [str(path) for path in written]})
        return 0
    print("\n".join(map(str, written)))
    print(f"next:\n  {next_command(directory, kind)}", file=sys.stderr)
    return 0


def kind_of(language: str | None, form: str) -> str:
    """Return the kind of project, by which its templates are found.

    Raises:
        RunError: R608 if there is no such kind.
    """
    if language is None and form != PYSPARK:
        fix = f"give one of {', '.join(LANGUAGES)} before the directory"
        raise wrong_usage(reason="new has no language", fix=fix)
    kind = f"{form}_{language or 'python'}" if form else str(language)
    if kind not in TEXTS:
        raise wrong_usage(reason=f"there is no project with --{form} and {language}", fix="give python or go")
    return kind


def next_command(directory: Path, kind: str) -> str:
    """Return the command that tests and runs a project.

    Example:
        >>> next_command(Path("-my app"), "python").split(" && ")[0]
        "cd './-my app'"
    """
    own = Path(sys.executable).with_name("wallaroo")
    is_away = own.exists() and not shutil.which("wallaroo")
    wallaroo, python = (shlex.quote(str(own.with_name(name))) if is_away else name for name in ("wallaroo", "python"))
    folder = f"./{directory}" if str(directory).startswith("-") else str(directory)
    steps = [] if directory.resolve() == Path.cwd() else [f"cd {shlex.quote(folder)}"]
    app, _, tests, _ = TEXTS[kind]
    if kind.startswith(PYSPARK):
        return " && ".join([*steps, tests.replace("python", python), f"{python} job.py"])
    memory = f" < {CASE}/input.txt" if kind.startswith(KAFKA) else ""  # records come from a file in place of a broker
    return " && ".join([*steps, f"{wallaroo} test .", f"{wallaroo} run {app} --engine memory{memory}"])


def write(kind: str, directory: Path) -> list[Path]:
    """Write the files of a kind of project, and return their paths. The directory must be new, or empty except `.git`.

    Raises:
        RunError: R734 if the directory is not empty, or its name has control characters.
        OSError: The files cannot be written.
    """
    if any(unicodedata.category(each) == "Cc" for each in directory.name):
        raise _refused(directory, "its name has control characters", "give another directory")
    directory.mkdir(parents=True, exist_ok=True)
    if any(each.name != ".git" for each in directory.iterdir()):
        raise _refused(directory, "it is not empty", "give a new directory")
    name = _name_of(directory)
    texts = {"{name}": name, **dict.fromkeys(EXAMPLES, f'"{name}"'), **dict(zip(MARKS, TEXTS[kind], strict=True))}
    written = []
    folders = (kind, kind.partition("_")[0] if "_" in kind else COMMON)
    templates = [template for folder in folders for template in (TEMPLATES / folder).glob(f"*{SUFFIX}")]
    for template in sorted(templates, key=lambda template: template.name):
        file = template.name.removesuffix(SUFFIX)
        text = template.read_text(encoding="utf-8")
        for mark, replacement in texts.items():
            text = text.replace(mark, replacement)
        written.append(_written(directory / FOLDERS.get(file, "") / file, text))
    if kind in IGNORED:
        written.append(_written(directory / ".gitignore", IGNORED[kind]))
    return written


def _written(path: Path, text: str) -> Path:
    """Write a file, and create its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _remove(files: list[Path], directory: Path) -> None:
    """Remove files of a new project, and then its empty folders."""
    for path in files:
        path.unlink(missing_ok=True)
        folders = path.relative_to(directory).parents
        for folder in list(folders)[:-1]:
            with suppress(OSError):  # the folder has other files
                (directory / folder).rmdir()


def _shown(path: Path, directory: Path) -> Path:
    """Return a resolved path, with the project's directory as the user has named it. Other paths stay as they are."""
    whole = directory.resolve()
    return directory / path.relative_to(whole) if path.is_relative_to(whole) else path


def _name_of(directory: Path) -> str:
    """Return the name of the application in a new project: valid in a string literal, and as a checkpoint's name."""
    letters = "".join(each if each.isalnum() or each in "-_ ." else "-" for each in directory.resolve().name)
    return letters.strip(" .") or "application"


def _refused(directory: Path, reason: str, fix: str) -> RunError:
    return RunError.of("R734", USAGE, path=directory, reason=reason, fix=fix)
