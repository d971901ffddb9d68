"""Declares the error that ends a command, with an exit code, and helpers for the texts of errors."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError

RUN, USAGE, TOPOLOGY, WORKER = 1, 2, 3, 4


class RunError(DiagnosticError):
    """The command cannot continue. The error has the text for the user, and the exit code.

    Attributes:
        exit_code: 2 for usage, 3 for the topology, 4 for a worker, 1 for any other error of a run.
        reason: The value `reason` of the error's text, if `of` has made it; else empty.
        choices: Values for the argument `given` of the command line, which stands for several things.

    Example:
        >>> error = RunError.of("R602", problem="was not found", reason="no `java` on PATH")
        >>> error.exit_code, error.diagnostics[0].code
        (1, 'R602')
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], exit_code: int = RUN) -> None:
        super().__init__(diagnostics)
        self.exit_code, self.reason = exit_code, ""
        self.given, self.choices = "", tuple[str, ...]()

    @classmethod
    def of(cls, code: str, exit_code: int = RUN, **values: Any) -> "RunError":
        """Return the error with a code of the catalogue. For `values` see `Diagnostic.of`."""
        error = cls([Diagnostic.of(code, **values)], exit_code)
        error.reason = str(values.get("reason", ""))
        return error

    def pasted(self, arguments: Sequence[str]) -> Sequence[Diagnostic]:
        """Return the diagnostics. If the error has choices, the remedy is the command line with each of them."""
        if not self.choices or self.given not in arguments:
            return self.diagnostics
        at = arguments.index(self.given)
        lines = (shlex.join(["wallaroo", *arguments[:at], each, *arguments[at + 1 :]]) for each in self.choices)
        return [replace(self.diagnostics[0], fix=f"run {' or '.join(f'`{line}`' for line in lines)}")]


def plural(number: int, noun: str) -> str:
    """Return a noun in singular or plural."""
    return noun if number == 1 else f"{noun}s"


def count(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number:,} {plural(number, noun)}"


def host_port(host: str, port: object) -> str:
    """Return HOST:PORT, with an IPv6 address in brackets.

    Example:
        >>> host_port("::1", 7010), host_port("localhost", 7010)
        ('[::1]:7010', 'localhost:7010')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def findings_in(file: str) -> Iterator[None]:
    """Add the name `file` to the findings of errors in the block, where a finding names no file."""
    try:
        yield
    except RunError as error:
        named = [finding if finding.file else replace(finding, file=file) for finding in error.diagnostics]
        raise RunError(named, error.exit_code) from error


def other_interface(worker: str, actual: str, expected: str, **place: Any) -> Diagnostic:
    """Return the finding that a worker was made for another topology. For `place` see `Diagnostic.of`."""
    reason = f"its interface hash is {actual}; the topology has {expected}"
    return Diagnostic.of("W403", worker=worker, reason=reason, **place)
