"""The file that says what a local process must know."""

import json
from pathlib import Path
from typing import Any

from wallaroo_runtime.errors import USAGE, RunError


def read_config(path: Path) -> Any:
    """Return what a configuration file holds.

    Raises:
        RunError: R616, it cannot be read.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise RunError.of("R616", USAGE, path=path, reason=error.strerror) from error
    except ValueError as error:
        raise RunError.of("R616", USAGE, path=path, reason=str(error)) from error
