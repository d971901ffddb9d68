"""Finds the user's cache: the directory for files that can be made or fetched again."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return the directory of this user's cache."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(folder) if os.path.isabs(folder) else Path.home() / ".cache"
    return root / "wallaroo"
