"""Case folders of `wallaroo test`: each has input messages for an application, and its expected output.

The file `case.toml` describes a folder. Every setting may be left out. An empty file is enough.

    app = "../app.py"      # Path of the application. By default it is app.py or the .go files of the folder, or of
                           # the nearest folder above it. The search ends at DIR, or at the working directory if
                           # that is above DIR.
    order = "key"          # "key": lines with one key come in the expected order. The key is the first word of a
                           # line; for a record it is topic and key. "any" (default): the order does not matter.
    dead_letters = 2       # Expected number of dead letters; 0 by default.
    output = "lines"       # "lines" (default): the output is text. "hex": each message follows its length (u32be),
                           # and the expected lines have the messages in hexadecimal digits.
    args = []              # Arguments of the application. By default --in has an address for each input, and --out
                           # has one.

    [[input]]              # Input of the first source; the next [[input]] is that of the next source. One input is
                           # sent after the other.
    file = "input.txt"
    kind = "lines"         # "lines": each line is a message. "hex": each line is a message in hexadecimal digits.
                           # "records": each line is a record of a topic.

An application that reads topics gets records. A line of an input of kind "records" is `TOPIC KEY VALUE`, and
`HEADER=VALUE` may follow for each header. The value `-` means that the record has no value. An empty line ends a
micro-batch. The line `visit NAME METADATA` runs the visitor NAME for every key with a state. The expected lines are
records, too:

    topics = ["my-table"]  # Topics whose records are compared. By default they are all topics that the application
                           # writes.

The expected lines are in `expected.txt`. If they differ between languages, they are in `expected.python.txt` and
`expected.go.txt`.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo.diagnostic.diagnostic import closest
from wallaroo_runtime.case.record_line import topic_and_key
from wallaroo_runtime.errors import USAGE, RunError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "case.toml"
ADDRESSES = ("127.0.0.1:7010", "127.0.0.1:7011", "127.0.0.1:7012")
RECORDS = "records"
KINDS = ("lines", "hex", RECORDS)
TYPES: dict[str, type] = {
    **dict.fromkeys(("app", "order", "output"), str),
    **dict.fromkeys(("args", "input", "topics"), list),
    "dead_letters": int,
}


@dataclass(frozen=True, eq=False)
class Case:
    """A case folder: input for an application, settings, and the expected output.

    Attributes:
        settings: Content of `case.toml`.
        top: The highest folder in which the application is searched. The search begins in the case's folder.
    """

    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    top: Path | None = None

    def setting(self, name: str, default: object = None) -> Any:
        """Return a setting of `case.toml`, or the default."""
        return self.settings.get(name, default)

    @property
    def has_records(self) -> bool:
        """Whether the input consists of records of topics. Otherwise it consists of messages for each source."""
        return any(item["kind"] == RECORDS for item in self.setting("input", []))

    def apps(self) -> dict[str, Path]:
        """Return the paths of the application for `wallaroo run`, by language (`python`, `go`).

        Raises:
            RunError: R745 if there is no application.
        """
        if "app" in self.settings:
            path = (self.folder / self.settings["app"]).resolve()
            return {"python" if path.suffix == ".py" else "go" if path.is_dir() else "": path}
        top = (self.top or self.folder).resolve()
        for folder in (self.folder.resolve(), *self.folder.resolve().parents):
            folders = {"python": folder / "app.py"} if (folder / "app.py").is_file() else {}
            folders |= {"go": folder} if any(folder.glob("*.go")) else {}
            if folders:
                return folders
            if folder == top:
                break
        raise bad(self.folder, "it has no application", 'say where it is in case.toml: app = "PATH"')

    def inputs(self) -> list[list[bytes]]:
        """Return the payloads of the input messages: a list for each source, in the order of sources.

        Raises:
            RunError: R745 if a file cannot be read as its kind.
        """
        return [self._payloads(item) for item in self.setting("input", [])]

    def _payloads(self, item: dict[str, str]) -> list[bytes]:
        path, number = self.folder / item["file"], 0
        try:
            payloads = []
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):  # noqa: B007
                payloads.append(self.payload(item["kind"], line))
        except (OSError, ValueError) as error:
            prefix = f"line {number} is no {item['kind']}; " if number else ""
            raise bad(path, f"{prefix}{reason_of(error)}", "correct the file, or its kind in case.toml") from error
        return payloads

    def payload(self, kind: str, line: str) -> bytes:
        """Return the message in a line of an input file: the bytes of its digits if `kind` is `hex`, else its text."""
        return bytes.fromhex(line) if kind == "hex" else line.encode()

    def arguments(self, addresses: Iterable[str] = ADDRESSES, out: str = "127.0.0.1:7002") -> list[str]:
        """Return the application's arguments from case.toml, or else `--in` and `--out` with the given addresses."""
        if "args" in self.settings:
            return list(self.settings["args"])
        sources = ",".join(address for address, _ in zip(addresses, self.setting("input", []), strict=False))
        return [*(["--in", sources] if sources else []), "--out", out]

    def expected_file(self, language: str) -> Path:
        """Return the path of the file with the expected output of a program in a language."""
        own = self.folder / f"expected.{language}.txt"
        return own if own.exists() else self.folder / "expected.txt"

    def expected(self, language: str) -> list[str]:
        """Return the lines that the case expects from a program in a language.

        Raises:
            RunError: R745 if the file cannot be read.
        """
        path = self.expected_file(language)
        try:
            return path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise bad(path, reason_of(error), "write the lines that are expected, or let --write do it") from error

    def lines(self, data: bytes) -> list[str]:
        """Return the output of a sink as lines that can be compared. Leave out an incomplete message at the end."""
        if self.setting("output") == "hex":
            return [frame.hex() for frame in unframed(data)]
        return data.decode("utf-8", "backslashreplace").split("\n")[:-1]

    def arranged(self, lines: Iterable[str]) -> list[str]:
        """Sort output lines for a comparison: by key or as text, as the setting `order` requires.

        Lines with one key keep their order.
        """
        if self.setting("order") != "key":
            return sorted(lines)
        keys: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for line in lines:
            keys[topic_and_key(line) if self.has_records else (line.split(" ")[0],)].append(line)
        return [line for key in sorted(keys) for line in keys[key]]


class CaseResult(NamedTuple):
    """The result of a case: the output of its application, and the dead letters.

    Attributes:
        lines: Lines of the output.
        dead_letters: Number of dead letters.
        errors: Error texts of the first dead letters, to print.
    """

    lines: list[str]
    dead_letters: int
    errors: list[str]


def read_case(folder: Path, top: Path | None = None) -> Case:
    """Return the case in a folder, with the settings of its `case.toml`.

    Raises:
        RunError: R745 if its case.toml is not correct.
    """
    path = folder / FILE
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise bad(path, reason_of(error), "correct it") from error
    for name, value in settings.items():
        if name not in TYPES:
            close = closest(name, TYPES)
            raise bad(path, f"{name} means nothing", f"did you mean {close}?" if close else f"use {', '.join(TYPES)}")
        if not isinstance(value, TYPES[name]):
            raise bad(path, f"{name} is {value!r}", "see `wallaroo test --help`")
    for item in settings.get("input", []):
        if not isinstance(item, dict) or set(item) != {"file", "kind"} or {*map(type, item.values())} != {str}:
            raise bad(path, f"an input is {item!r}", 'write [[input]], file = "NAME" and kind = "lines"')
        if item["kind"] not in KINDS:
            raise bad(path, f"there is no kind {item['kind']!r} of input", f"use {', '.join(KINDS)}")
    return Case(folder, settings, top)


def unframed(data: bytes) -> Iterable[bytes]:
    """Yield the complete messages of a stream in which four bytes of length precede each message."""
    at = 0
    while at + 4 <= len(data) and at + 4 + (size := int.from_bytes(data[at : at + 4], "big")) <= len(data):
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def bad(path: Path, reason: str, fix: str) -> RunError:
    """Return the error for a case that cannot be run (R745)."""
    return RunError.of("R745", USAGE, path=path, reason=reason, fix=fix)


def reason_of(error: Exception) -> str:
    """Return in words the reason why a file cannot be read.

    Example:
        >>> reason_of(FileNotFoundError(2, "No such file or directory", "expected.txt"))
        'there is no such file'
    """
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return (isinstance(error, OSError) and error.strerror) or str(error)
