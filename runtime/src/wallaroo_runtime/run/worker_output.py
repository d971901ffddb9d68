"""Follows the logs of a run's workers on this machine, so that the console can show the workers' output."""

import os
from collections.abc import Iterator
from pathlib import Path

LOOK_BYTES = 64 * 1024
BACKLOG_BYTES = 1024 * 1024  # more output is skipped, and its size is shown
OWN = b"[supervisor: "


class WorkerOutput:
    """Reads the lines that workers add to their logs from now on.

    Args:
        folder: Folder with the logs, which are called `worker-NAME-ID.log`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at = {path: (path.stat().st_ino, path.stat().st_size) for path in self._logs()}

    def _logs(self) -> list[Path]:
        return sorted(self._folder.glob("worker-*.log"))

    def lines(self, *, whole: bool = True) -> Iterator[tuple[str, str]]:
        """Yield the lines since the last call, each with the name of its worker.

        Args:
            whole: Whether to leave an incomplete line for the next call.
        """
        for path in self._logs():
            name = path.stem.removeprefix("worker-").rpartition("-")[0]
            yield from ((name, line) for line in self._read(path, whole=whole))

    def _read(self, path: Path, *, whole: bool) -> Iterator[str]:
        inode, at = self._at.get(path, (0, 0))
        try:
            with path.open("rb") as file:
                stat = os.fstat(file.fileno())
                at = at if stat.st_ino == inode else 0  # the log was rotated
                if stat.st_size - at > BACKLOG_BYTES:
                    skipped, at = stat.st_size - at, stat.st_size
                    yield f"[{skipped:,} bytes are only in {path}]"
                file.seek(at)
                data = file.read(LOOK_BYTES if whole else BACKLOG_BYTES)
        except FileNotFoundError:
            return
        if whole and (len(data) < LOOK_BYTES or b"\n" in data):  # a longer line is shown in parts
            data = data[: data.rfind(b"\n") + 1]
        self._at[path] = stat.st_ino, at + len(data)
        yield from (line.decode("utf-8", "replace") for line in data.splitlines() if not line.startswith(OWN))
