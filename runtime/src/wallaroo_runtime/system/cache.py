"""Where this user keeps what can be made or fetched again."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return where this user's programs keep what can be made again."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return root / "wallaroo"
