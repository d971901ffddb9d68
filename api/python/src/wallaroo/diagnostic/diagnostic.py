"""Diagnostics: findings about a program or a topology, each with a stable code and a remedy.

The error catalogue (`errors.json`), which all languages share, contains the texts.
"""

import difflib
import json
import pkgutil
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

SHOWN_CHARACTERS = 80
ADDRESS = re.compile(" at 0x[0-9a-f]+")  # in the repr of an object whose class has no repr of its own
_DEFERRED = {CoroutineType: "a coroutine", GeneratorType: "a generator", AsyncGeneratorType: "an async generator"}


class Family(Enum):
    """The subject of an error, by the first letter of its code."""

    TOPOLOGY = "T"
    PLAN = "P"
    WORKER = "W"
    USER_CODE = "C"
    RUN = "R"
    INTERNAL = "I"


class Kind(Enum):
    """The kind of an error (`kind` in the catalogue). Programs compare kinds, and never codes, to decide what to do."""

    OTHER = ""
    ABSENT = "absent"
    AT_END = "at_end"
    DAMAGED = "damaged"
    ENDED = "ended"
    ENDS_RUN = "ends_run"
    HUNG = "hung"
    IN_USE = "in_use"
    LACKING = "lacking"
    NO_TOPIC = "no_topic"
    NO_VISIT = "no_visit"
    OUTAGE = "outage"
    QUERY = "query"
    UNAVAILABLE = "unavailable"
    USAGE = "usage"


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Return the error catalogue: the `name`, `kind`, `message` and `fix` of each code."""
    text = pkgutil.get_data(__package__, "errors.json")  # not importlib.resources, whose imports a program may shadow
    return {entry["code"]: entry for entry in json.loads(text or "")["errors"]}


def kind_of(code: str) -> Kind:
    """Return the kind of a code; `OTHER` for a code of a later release."""
    return Kind(catalogue().get(code, {}).get("kind", ""))


def shown(value: object) -> str:
    """Return a value as text for a message: its repr without memory addresses, cut at 80 characters."""
    kind = _DEFERRED.get(type(value))
    try:
        text = f"{kind} of {getattr(value, '__qualname__', '')}" if kind else repr(value)
    except (Exception, SystemExit) as err:  # e.g. for an int of more than 4300 digits
        text = f"<{type(value).__name__} whose repr fails: {type(err).__name__}>"
    text = text if isinstance(value, (str, bytes)) else ADDRESS.sub("", text)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that was probably meant, or an empty text.

    Args:
        name: The name as it was written.
        known: Names that could be meant.
        cutoff: Least similarity of the two names, from 0 to 1. A guess without a reported error should use more.
    """
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?` if a known name `x` is similar to `name`, else an empty text."""
    close = closest(name, known)
    return f'; did you mean "{close}"?' if close else ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a code, the fault, its place, and the remedy.

    Example:
        >>> values = {"what": 'pipeline "count"', "kind": "name"}
        >>> print(Diagnostic.of("T203", pointer="/pipelines/1/name", file="app.py", line=9, **values))
        T203 pipeline "count" is declared twice
          at /pipelines/1/name  (declared in app.py:9)
          fix: remove one of the two, or give it another name
    """

    code: str
    message: str
    fix: str
    pointer: str = ""
    file: str = ""
    line: int = 0
    traceback: str = ""

    @classmethod
    def of(
        cls, code: str, *, pointer: str = "", file: str = "", line: int = 0, traceback: str = "", **values: object
    ) -> "Diagnostic":
        """Make a diagnostic from the texts that the catalogue has for a code, filled in with `values`."""
        entry = catalogue()[code]
        return cls(
            code, entry["message"].format(**values), entry["fix"].format(**values), pointer, file, line, traceback
        )

    @classmethod
    def no_package(cls, what: str, package: str, error: object, install: str) -> "Diagnostic":
        """Make the finding (R728) that a package is missing. Its remedy calls `pip` of the Python that runs now.

        Example:
            >>> Diagnostic.no_package("a run on Spark", "pyspark", "no module", "pyspark").fix.partition(" -m ")[2]
            'pip install pyspark'
        """
        python = shlex.quote(sys.executable)
        return cls.of("R728", what=what, package=package, error=error, install=install, python=python)

    @classmethod
    def wrong(cls, method: str, parameter: str, actual: object, expected: str) -> "Diagnostic":
        """Make the finding (T207) that an argument of a function is not as expected.

        Example:
            >>> Diagnostic.wrong("run", "app", 3, "a path").message
            'run: parameter app is 3; expected a path'
        """
        return cls.of(
            "T207", method=method, parameter=parameter, actual=shown(actual), expected=expected, fix=f"pass {expected}"
        )

    @property
    def kind(self) -> Kind:
        """Kind of the error, by which programs may decide what to do."""
        return kind_of(self.code)

    @property
    def family(self) -> Family:
        """Subject of the error."""
        return next((family for family in Family if self.code.startswith(family.value)), Family.INTERNAL)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Diagnostic":
        """Read the form that `to_json` wrote."""
        return cls(**{name: value[name] for name in cls.__slots__ if name in value})

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are set, as a JSON object."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}

    def __str__(self) -> str:
        lines = [f"{self.code} {self.message}"]
        declared = f"{self.file}:{self.line}" if self.line else self.file
        if self.pointer:
            lines.append(f"  at {self.pointer}" + (f"  (declared in {declared})" if declared else ""))
        elif declared:
            lines.append(f"  at {declared}")
        lines += [f"  | {line}" for line in self.traceback.rstrip().splitlines()]
        lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class DiagnosticError(Exception):
    """An error with one or more diagnostics, sorted by their place in the topology document.

    Args:
        diagnostics: The findings, or a single one.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic) -> None:
        findings = [diagnostics] if isinstance(diagnostics, Diagnostic) else diagnostics
        self.diagnostics = sorted(findings, key=lambda finding: (finding.pointer, finding.code))
        super().__init__("\n".join(map(str, self.diagnostics)))

    @property
    def kind(self) -> Kind:
        """The kind of the first diagnostic."""
        return self.diagnostics[0].kind if self.diagnostics else Kind.OTHER


def check_arguments(method: str, args: object) -> None:
    """Check the command-line arguments that a program passes to a function, such as `wallaroo.testing.run`.

    Raises:
        DiagnosticError: T207 if they are not texts in a list, tuple or other sequence.

    Example:
        >>> check_arguments("run", ["--in", "127.0.0.1:7010"])
    """
    texts = args if isinstance(args, Sequence) and not isinstance(args, (str, bytes, bytearray)) else [None]
    if not all(isinstance(text, str) for text in texts):
        expected = 'a list of texts, e.g. ["--in", "127.0.0.1:7010"]'
        raise DiagnosticError(Diagnostic.wrong(method, "args", args, expected))
