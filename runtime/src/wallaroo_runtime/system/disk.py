"""The size of files on the disk."""

import os
from pathlib import Path


def measure(path: Path) -> int:
    """Return the number of bytes that a file or directory takes on the disk. Links are not followed.

    A file with several names counts once; files that are removed meanwhile do not count.
    """
    size, seen = 0, set[tuple[int, int]]()
    for folder, names, files in os.walk(path) if not path.is_symlink() else ():
        for name in (*files, *names, "."):
            try:
                status = os.lstat(os.path.join(folder, name))
            except FileNotFoundError:
                continue
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                size += status.st_blocks * 512
    return size if seen else os.lstat(path).st_blocks * 512
