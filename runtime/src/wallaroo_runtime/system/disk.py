"""What files take on the disk."""

import os
from pathlib import Path


def measure(path: Path) -> tuple[int, float]:
    """Return bytes on the disk and the last change of a file or directory; links are not followed.

    A file with several names counts once; what is removed meanwhile does not count.
    """
    size, changed, seen = 0, 0.0, set[tuple[int, int]]()
    for folder, names, files in os.walk(path) if not path.is_symlink() else ():
        for name in (*files, *names, "."):
            try:
                found = os.lstat(os.path.join(folder, name))
            except FileNotFoundError:
                continue
            if (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                size += found.st_blocks * 512
                changed = max(changed, found.st_mtime)
    if not seen:
        found = os.lstat(path)
        return found.st_blocks * 512, found.st_mtime
    return size, changed
