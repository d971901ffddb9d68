"""The case folders: input as messages, output as lines, golden files."""

import re
import struct
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import tomllib

CASES = Path(__file__).resolve().parent / "cases"
NAMES = ("word_count", "reverse", "celsius", "alphabet")
LANGUAGES = ("python", "go")


@dataclass(frozen=True)
class Case:
    """One folder of tests/cases."""

    name: str

    @property
    def folder(self) -> Path:
        """Return the folder."""
        return CASES / self.name

    def app(self, language: str) -> Path:
        """Return what `wallaroo run` is given."""
        return self.folder / "app.py" if language == "python" else self.folder

    def setting(self, name: str) -> object:
        """Return a value of case.toml."""
        return tomllib.loads((self.folder / "case.toml").read_text(encoding="utf-8"))[name]

    def messages(self) -> list[bytes]:
        """Return the input as payloads."""
        lines = (self.folder / "input.txt").read_text(encoding="utf-8").splitlines()
        kind = self.setting("input")
        if kind == "float32":
            return [struct.pack(">f", float(line)) for line in lines]
        if kind == "votes":
            return [struct.pack(">sI", letter.encode(), int(votes)) for letter, votes in map(str.split, lines)]
        return [line.encode() for line in lines]

    def expected(self, language: str) -> list[str]:
        """Return the expected lines."""
        own = self.folder / f"expected.{language}.txt"
        file = own if own.exists() else self.folder / "expected.txt"
        return file.read_text(encoding="utf-8").splitlines()

    def lines(self, data: bytes) -> list[str]:
        """Return received bytes as lines; bytes of a message that is not whole yet are left out."""
        if self.setting("output") == "votes":
            whole = len(data) // 13 * 13
            return [f"{letter.decode()} {total}" for _, letter, total in struct.iter_unpack(">IsQ", data[:whole])]
        return data.decode().split("\n")[:-1]

    def arranged(self, lines: Iterable[str]) -> list[str]:
        """Sort lines as far as their order is free: by key, keeping each key's order; else as text."""
        if self.setting("order") != "key":
            return sorted(lines)
        keys: dict[str, list[str]] = defaultdict(list)
        for line in lines:
            keys[line.split(" ")[0]].append(line)
        return [line for key in sorted(keys) for line in keys[key]]


def without_symbols(plan: str) -> str:
    """Leave out the names of the user's functions, the only part of a plan that a language shows in."""
    return re.sub(r'^(  \S+ .*?"[^"]*") \([^)]*\)', r"\1", plan, flags=re.MULTILINE)
