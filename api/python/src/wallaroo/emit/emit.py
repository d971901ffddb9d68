"""`python -m wallaroo.emit APP [ARGS]`: writes the topology of a program.

With WALLAROO_EMIT_FILE the result, topology or diagnostics, goes to this file. Without it the topology goes to stdout,
and the output of the program itself to stderr.
"""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.emit.program import load
from wallaroo.emit.topology import canonical

USAGE_STATUS = 2
TOPOLOGY_STATUS = 3


def result_of(app: str, default_args: Sequence[str]) -> dict[str, Any]:
    """Return a program's `{"topology": ...}` or `{"library": ...}`, or its faults as `{"diagnostics": ...}`."""
    warnings.simplefilter("default")
    try:
        return load(app, application_args(default_args)).to_json()
    except DiagnosticError as err:
        return {"diagnostics": [finding.to_json() for finding in err.diagnostics]}


def application_args(default: Sequence[str]) -> list[str]:
    """Return the application's arguments from the environment variable WALLAROO_ARGS, or `default` without it.

    Raises:
        DiagnosticError: R716 if the variable is not a JSON array of texts.
    """
    text = os.environ.get("WALLAROO_ARGS")
    if text is None:
        return list(default)
    try:
        args = json.loads(text)
    except ValueError:
        args = None
    if isinstance(args, list) and all(isinstance(item, str) for item in args):
        return args
    finding = Diagnostic.of(
        "R716", what="WALLAROO_ARGS", reason="it is not a JSON array of texts", fix="let the runtime set it"
    )
    raise DiagnosticError(finding)


def write_result(file: str, result: dict[str, Any]) -> None:
    """Write a result atomically: a reader finds the complete file or no file."""
    temporary = f"{file}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as out:
        json.dump(result, out, ensure_ascii=False)
    os.replace(temporary, file)


def emit_to_file(app: str, file: str, default_args: Sequence[str] = ()) -> None:
    """Run a program's setup, and write the topology or the diagnostics to a file."""
    write_result(file, result_of(app, default_args))


def leave(status: int) -> NoReturn:
    """End this process without waiting for its threads, since one may run user code that never returns."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError):  # user code has closed it
            stream.flush()
    os._exit(status)


def main(arguments: Sequence[str]) -> int:
    """Run the command. Return the exit status."""
    if not arguments:
        print("usage: python -m wallaroo.emit APP [ARGUMENTS OF THE APPLICATION]", file=sys.stderr)
        return USAGE_STATUS
    app, *args = arguments
    file = os.environ.get("WALLAROO_EMIT_FILE")
    if file:
        emit_to_file(app, file, args)
        return 0
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        document = load(app, application_args(args)).document
    except DiagnosticError as err:
        print(err, file=sys.stderr)
        return TOPOLOGY_STATUS
    with out:
        out.write(canonical(document))
    return 0
