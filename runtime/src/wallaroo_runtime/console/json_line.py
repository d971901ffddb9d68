"""Writes the output of commands with `--json`: on each line an object with a time. Also writes findings."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from datetime import datetime, timezone
from typing import Any, TextIO

from wallaroo.diagnostic.diagnostic import Diagnostic


def stamped(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the present time as first item, unless they already have a time.

    Example:
        >>> list(stamped({"pid": 1})), stamped({"time": "then"})
        (['time', 'pid'], {'time': 'then'})
    """
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": now, **values}


def print_json(values: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Print an object as a line of JSON on stdout, or another stream. Add the present time if it has no time."""
    print(json.dumps(stamped(values), ensure_ascii=False), file=stream, flush=True)


def print_result(values: Mapping[str, Any], text: str, *, as_json: bool, stream: TextIO | None = None) -> None:
    """Print the result of a command on stdout, or another stream: as a line of JSON, or as a text for people."""
    print_json(values, stream) if as_json else print(text, file=stream, flush=True)


@contextmanager
def stdout_for_results() -> Iterator[TextIO]:
    """Yield stdout, kept for results: if it is no terminal, all other prints in the block go to stderr."""
    stdout = sys.stdout
    with nullcontext() if stdout.isatty() else redirect_stdout(sys.stderr):
        yield stdout


def report(diagnostics: Sequence[Diagnostic], as_json: bool) -> None:
    """Print findings on stderr: as texts for people, or as one JSON array."""
    if as_json:
        text = json.dumps([finding.to_json() for finding in diagnostics], ensure_ascii=False)
    else:
        text = "\n".join(map(str, diagnostics))
    print(text, file=sys.stderr, flush=True)
