"""The file in which a gateway or an egress reports its state, for drivers and commands on the same machine."""

import contextlib
import json
import os
import sys
from collections import deque
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.system.process import process_start_time

KEPT_DIAGNOSTICS = 100
SAID_PER_CODE = 1000


class StatusFile:
    """Writes the state of this process as JSON, atomically, and only when it has changed.

    The document always has `pid`, `start_time` (clock ticks since boot), `state` and `diagnostics` (the latest 100).

    Attributes:
        text: The latest status, even if a full disk has not taken it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: bytes | None = None
        self._complained = False
        self.text = "{}"
        self._said: dict[str, int] = {}
        self._process = {"pid": os.getpid(), "start_time": process_start_time(os.getpid())}
        self.diagnostics: deque[Diagnostic] = deque(maxlen=KEPT_DIAGNOSTICS)

    def say(self, diagnostic: Diagnostic) -> None:
        """Keep a diagnostic for the status, and print it to stderr.

        At most 1000 diagnostics of one code are printed, because a peer may cause any number.
        """
        self.diagnostics.append(diagnostic)
        count = self._said[diagnostic.code] = self._said.get(diagnostic.code, 0) + 1
        if count <= SAID_PER_CODE:
            _print(diagnostic)
        if count == SAID_PER_CODE:
            _print(f"{diagnostic.code} is no longer reported")

    def write(self, state: str, **values: Any) -> bool:
        """Write the status if it differs from the last written status. Return whether it differs."""
        document = {
            **self._process,
            "state": state,
            **values,
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
        }
        content = json.dumps(document, indent=2).encode() + b"\n"
        if content == self._written:
            return False
        self.text = content.decode()
        try:
            replace_file(self._path, content)
            self._written, self._complained = content, False
        except OSError as error:
            # A full disk must not end the process; the next write tries again. Without the file, drivers call `Status`.
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            if not self._complained:
                _print(f"{self._path} cannot be written; {error.strerror}")
            self._complained = True
        return True


def _print(text: object) -> None:
    """Print a text to stderr. Ignore an error, e.g. if stderr is a file on a full disk, so that the process goes on."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
