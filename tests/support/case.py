"""The case folders: input as messages, output as lines, golden files.

`case.toml` says how the end-to-end test reads a folder:

    runner = "tcp"            # who runs it: test_run_cases.py for "tcp"; other runners have tests of their own
    order = "key"             # "key": rising within a key; "any": as lines, in any order
    dead_letters = 2
    output = "lines"          # "lines"; "votes": 13 bytes each; "hex": frames of u32 length, shown as hex digits;
                              # "records": of Kafka, "PARTITION KEY VALUE" with - for no key
    options = []              # more options of `wallaroo run`
    args = []                 # the application's arguments; none: --in and --out

    [[input]]                 # for each source, in the order of its number; sent one after the other, none: no --in
    file = "input.txt"
    kind = "lines"            # a message for each line: "lines", "float32", "votes", "hex"; "keyed": "KEY VALUE";
                              # "records": "TOPIC KEY VALUE", an empty line ends a micro-batch

With runner "goka" `topics` names the topics whose records are the output, "TOPIC KEY VALUE" with - for no value.
"""

import re
import struct
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from wallaroo.experimental.stream import LENGTH, TIME

CASES = Path(__file__).resolve().parents[1] / "cases"
NAMES = tuple(sorted(folder.name for folder in CASES.iterdir() if (folder / "case.toml").exists()))
ADDRESSES = ("127.0.0.1:7010", "127.0.0.1:7011", "127.0.0.1:7012")


@cache
def settings(file: Path) -> dict[str, Any]:
    """Return a case.toml, read once."""
    return tomllib.loads(file.read_text(encoding="utf-8"))


def payload(kind: str, line: str) -> bytes:
    """Return the message that a line of an input file stands for."""
    if kind == "float32":
        return struct.pack(">f", float(line))
    if kind == "votes":
        letter, votes = line.split()
        return struct.pack(">sI", letter.encode(), int(votes))
    return bytes.fromhex(line) if kind == "hex" else line.encode()


@dataclass(frozen=True)
class Case:
    """One folder of tests/cases."""

    name: str

    @property
    def folder(self) -> Path:
        """Return the folder."""
        return CASES / self.name

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages in which the case has a program."""
        found = {"python": (self.folder / "app.py").exists(), "go": (self.folder / "app.go").exists()}
        return tuple(language for language, exists in found.items() if exists)

    def app(self, language: str) -> Path:
        """Return what `wallaroo run` is given."""
        return self.folder / "app.py" if language == "python" else self.folder

    def setting(self, name: str, default: object = None) -> Any:
        """Return a value of case.toml."""
        return settings(self.folder / "case.toml").get(name, default)

    def inputs(self) -> list[list[bytes]]:
        """Return the input of each source as payloads."""
        return [
            [payload(item["kind"], line) for line in (self.folder / item["file"]).read_text("utf-8").splitlines()]
            for item in self.setting("input", [])
        ]

    def arguments(self, addresses: Iterable[str] = ADDRESSES, out: str = "127.0.0.1:7002") -> list[str]:
        """Return the application's arguments: its own, or `--in` for as many sources as it has inputs, and `--out`."""
        if "args" in settings(self.folder / "case.toml"):
            return list(self.setting("args"))
        sources = ",".join(address for address, _ in zip(addresses, self.setting("input", []), strict=False))
        return [*(["--in", sources] if sources else []), "--out", out]

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
        if self.setting("output") == "hex":
            return [frame.hex() for frame in unframed(data)]
        return data.decode().split("\n")[:-1]

    def arranged(self, lines: Iterable[str]) -> list[str]:
        """Sort lines as far as their order is free: by key, keeping each key's order; else as text."""
        if self.setting("order") != "key":
            return sorted(lines)
        keys: dict[str, list[str]] = defaultdict(list)
        for line in lines:
            keys[line.split(" ")[0]].append(line)
        return [line for key in sorted(keys) for line in keys[key]]


def unframed(data: bytes) -> Iterable[bytes]:
    """Yield the whole messages of a stream that has four bytes of length before each."""
    at = 0
    while at + 4 <= len(data) and at + 4 + (size := int.from_bytes(data[at : at + 4], "big")) <= len(data):
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


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
