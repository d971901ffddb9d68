"""The directory for files of this user that can be made or fetched again."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return the directory for files of this user's programs that can be made again."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(folder) if os.path.isabs(folder) else Path.home() / ".cache"
    return root / "wallaroo"
