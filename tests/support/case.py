"""The case folders of this repository: input as messages, output as lines, golden files.

What `case.toml` says is described in `wallaroo_runtime.cli.case`. Here `runner` says who runs a folder:
test_run_cases.py for "tcp"; other runners have tests of their own. Theirs are output = "records" (of Kafka, "PARTITION
KEY VALUE" with - for no key), inputs of kind "keyed" ("KEY VALUE") and "records" ("TOPIC KEY VALUE", an empty line
ends a micro-batch), and `topics` of a case of records: the topics whose records are the output, "TOPIC KEY VALUE" with
- for no value. Where languages declare one thing by different steps, as groups of Goka, `topology.go.json` and
`plan.go.txt` are the golden files of the programs in Go.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from wallaroo.experimental.stream import LENGTH, TIME
from wallaroo_runtime.cli import case

CASES = Path(__file__).resolve().parents[1] / "cases"
NAMES = tuple(sorted(folder.name for folder in CASES.iterdir() if (folder / "case.toml").exists()))


@cache
def settings(name: str) -> dict[str, Any]:
    """Return what a case.toml says, read once."""
    return case.read_case(CASES / name).settings


class Case(case.Case):
    """One folder of tests/cases."""

    def __init__(self, name: str) -> None:
        super().__init__(CASES / name, settings(name))

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
