"""The case folders of this repository: input as messages, output as lines, golden files.

What `case.toml` says is described in `wallaroo_runtime.case.case`. Here there are also inputs of kind "float32" and
"votes" (a letter and a number), output = "votes", and `runner`, who runs a folder: test_run_cases.py for "tcp"; other
runners have tests of their own. Theirs are output = "records" (of Kafka, "PARTITION KEY VALUE" with - for no key) and
inputs of kind "keyed" ("KEY VALUE"). Where languages declare one thing by different steps, as groups of Goka,
`topology.go.json` and `plan.go.txt` are the golden files of the programs in Go.
"""

import re
import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from wallaroo.experimental.stream import LENGTH, TIME
from wallaroo_runtime.case import case
from wallaroo_runtime.program.build import build

CASES = Path(__file__).resolve().parents[1] / "cases"
VOTES = struct.Struct(">IsQ")
NAMES = tuple(sorted(folder.name for folder in CASES.iterdir() if (folder / "case.toml").exists()))


@cache
def settings(name: str) -> dict[str, Any]:
    """Return what a case.toml says, read once."""
    return tomllib.loads((CASES / name / case.FILE).read_text(encoding="utf-8"))


@cache
def binary(folder: Path) -> Path:
    """Return the worker of a program in Go, built once."""
    return build(folder)


class Case(case.Case):
    """One folder of tests/cases."""

    def __init__(self, name: str) -> None:
        super().__init__(CASES / name, settings(name))

    def payload(self, kind: str, line: str) -> bytes:
        """Return the message that a line of an input file stands for."""
        if kind == "float32":
            return struct.pack(">f", float(line))
        if kind == "votes":
            letter, votes = line.split()
            return struct.pack(">sI", letter.encode(), int(votes))
        return super().payload(kind, line)

    def lines(self, data: bytes) -> list[str]:
        """Return received bytes as lines; bytes of a message that is not whole yet are left out."""
        if self.setting("output") == "votes":
            whole = len(data) // VOTES.size * VOTES.size
            return [f"{letter.decode()} {total}" for _, letter, total in VOTES.iter_unpack(data[:whole])]
        return super().lines(data)

    @property
    def name(self) -> str:
        """Return the folder's name."""
        return self.folder.name

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages in which the case has a program."""
        return tuple(self.apps())

    def app(self, language: str) -> Path:
        """Return what `wallaroo run` is given."""
        return self.apps()[language]

    def golden(self, name: str, language: str) -> Path:
        """Return a golden file: NAME.LANGUAGE.SUFFIX where a language declares the same thing by other steps."""
        file = self.folder / name
        own = file.with_name(f"{file.stem}.{language}{file.suffix}")
        return own if own.exists() else file

    def program(self, language: str) -> Path:
        """Return what an engine in this process is given: `app`, where a program in Go alone is built once."""
        return self.app(language) if language != "go" or self.is_mixed else binary(self.folder)

    @property
    def is_mixed(self) -> bool:
        """Whether its program uses one in another language, which it names by a path."""
        return self.name.startswith("mixed_")

    @property
    def translated(self) -> tuple[str, ...]:
        """Return the languages that declare the same topology."""
        return tuple(each for each in self.languages if self.golden("topology.json", each).name == "topology.json")


def payloads(data: bytes) -> list[str]:
    """Return what the whole frames of a sink connector's stream hold."""
    found, at = [], 0
    while at + LENGTH.size <= len(data) and at + LENGTH.size + LENGTH.unpack_from(data, at)[0] <= len(data):
        end = at + LENGTH.size + LENGTH.unpack_from(data, at)[0]
        found.append(data[at + LENGTH.size + TIME.size : end].decode("ascii"))
        at = end
    return found


PROGRAMS = tuple((name, language) for name in NAMES for language in Case(name).languages)


def without_symbols(plan: str) -> str:
    """Leave out the names of the user's functions, the only part of a plan that a language shows in."""
    return re.sub(r'^(  \S+ .*?"[^"]*") \([^)]*\)', r"\1", plan, flags=re.MULTILINE)
