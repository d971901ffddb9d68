"""`wallaroo test DIR`: run case folders, and show how the output differs from the expected one.

A case is a folder with `case.toml`, input and `expected.txt`; DIR is a case, or has cases below it.
"""

import argparse
import difflib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo_runtime.case import case as cases
from wallaroo_runtime.case.case import FILE, Case, CaseResult, bad, read_case
from wallaroo_runtime.console.json_line import print_result, stdout_for_results
from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.errors import RUN

MAX_LINES = 60
FIX = "write one, as `wallaroo test --help` shows; `python -m pytest` and `go test ./...` run tests in programs"


class CaseOutcome(NamedTuple):
    """The result of a case of `wallaroo test`.

    Attributes:
        name: Name of the case's folder, with the language if the case has several.
        problems: Differences from the expected result; empty if the case passed.
        lines: Number of lines of output.
        dead_letters: Number of dead letters.
    """

    name: str
    problems: list[str]
    lines: int = 0
    dead_letters: int = 0


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    text = f"{__doc__}\n{(cases.__doc__ or '').partition('.' + chr(10))[2]}"
    parser = subparsers.add_parser("test", help="run case folders and compare their output", description=text)
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".", help="a case, or a folder with cases below")
    parser.add_argument("--write", action="store_true", help="write the output as expected; look at the difference")
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each case")


def run(arguments: argparse.Namespace) -> int:
    """Run the cases one after the other. Return 1 if a case failed, else 0."""
    from wallaroo_runtime.console.breakpoint import breakpoints  # late import, as for `run_case`

    outcomes = []
    with stdout_for_results() as stdout, breakpoints() as debugging:
        for outcome in (each for case in _found(Path(arguments.directory)) for each in _outcomes(case, arguments)):
            debugging.check()
            outcomes.append(outcome)
            print_result(outcome._asdict(), _shown(outcome), as_json=arguments.json, stream=stdout)
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    if not arguments.json:
        print(f"{failed} of {len(outcomes)} failed" if failed else f"{len(outcomes)} passed")
    return RUN if failed else 0


def _found(directory: Path) -> list[Case]:
    files = [directory / FILE] if (directory / FILE).is_file() else sorted(directory.glob(f"**/{FILE}"))
    if not files:
        raise bad(directory, f"there is no {FILE} in or below it", FIX)
    here = Path.cwd()
    top = here if here in directory.resolve().parents else directory
    return [read_case(file.parent, top) for file in files]


def _outcomes(case: Case, arguments: argparse.Namespace) -> Iterator[CaseOutcome]:
    from wallaroo_runtime.case.run import run_case  # late import: this imports the engine

    apps = case.apps()
    for language, app in apps.items():
        name = f"{case.folder} ({language})" if len(apps) > 1 else str(case.folder)
        try:
            _check(case, None if arguments.write else language)
            result = run_case(case, app)
            if arguments.write:
                text = "".join(f"{line}\n" for line in case.arranged(result.lines))
                case.expected_file(language).write_text(text, encoding="utf-8")
            yield CaseOutcome(name, differences(case, language, result), len(result.lines), result.dead_letters)
        except DiagnosticError as error:
            yield CaseOutcome(name, str(error).splitlines())


def _check(case: Case, language: str | None) -> None:
    """Read all files of a case, to find errors in them before the program is built, since a build may take long.

    Args:
        language: Language whose expected lines are read, too; None if the case need not have expected lines.

    Raises:
        RunError: R745 or R721 if a file is not correct.
    """
    from wallaroo_runtime.case.topics import steps

    if language is not None:
        case.expected(language)
    for item in case.setting("input", []) if case.has_records else ():
        deque(steps(case.folder / item["file"]), maxlen=0)
    if not case.has_records:
        case.inputs()


def differences(case: Case, language: str, result: CaseResult) -> list[str]:
    """Return in words how a result differs from the expectations of a case; empty if it does not."""
    problems = []
    expected, lines = case.arranged(case.expected(language)), case.arranged(result.lines)
    if expected != lines:
        name = case.expected_file(language).name
        shown = list(difflib.unified_diff(expected, lines, name, "came", n=1, lineterm=""))
        left = len(shown) - MAX_LINES
        problems += [*shown[:MAX_LINES], *([f"... and {left} more lines"] if left > 0 else [])]
    if (wanted := case.setting("dead_letters", 0)) != result.dead_letters:
        problems += [
            f"dead letters: expected {wanted}, came {result.dead_letters}",
            *(f"  {each}" for each in result.errors),
        ]
    return problems


def _shown(outcome: CaseOutcome) -> str:
    letters = f", dead letters {outcome.dead_letters}" if outcome.dead_letters else ""
    if not outcome.problems:
        return f"ok    {outcome.name}: lines {outcome.lines}{letters}"
    return "\n".join([f"FAIL  {outcome.name}", *(f"  {printable(problem)}" for problem in outcome.problems)])
