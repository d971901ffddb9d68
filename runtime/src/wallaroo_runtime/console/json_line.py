"""Objects that commands print with `--json`: one a line, each with a time."""

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any


def stamped(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the time of now in front, unless they have a time.

    Example:
        >>> list(stamped({"pid": 1})), stamped({"time": "then"})
        (['time', 'pid'], {'time': 'then'})
    """
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": now, **values}


def print_json(values: Mapping[str, Any]) -> None:
    """Print an object in a line of stdout, with its time."""
    print(json.dumps(stamped(values), ensure_ascii=False), flush=True)
