"""How a local service notices that its driver is gone."""

import json
from pathlib import Path

from wallaroo_runtime.system.process import process_start_time


class DriverWatch:
    """Detects that the driver has been gone for so long that nobody will come back.

    A driver announces itself in `driver.json` (`{"pid": ..., "start_time": ...}`); one that is written later
    takes the place of the one before. Without any announcement the process lives until it is stopped.

    Args:
        path: Where a driver announces itself.
        linger_s: How long to go on without a driver.
    """

    def __init__(self, path: Path, linger_s: float) -> None:
        self._path, self._linger_s = path, linger_s
        self._driver: dict[str, int] | None = None
        self._seen: tuple[int, int] | None = None
        self._gone_since: float | None = None

    def expired(self, now: float) -> bool:
        """Look once; `now` is a monotonic time in seconds."""
        self._read_announcement()
        if self._driver is None or process_start_time(self._driver["pid"]) == self._driver["start_time"]:
            self._gone_since = None
            return False
        if self._gone_since is None:
            self._gone_since = now
        return now - self._gone_since >= self._linger_s

    @property
    def has_driver(self) -> bool:
        """Whether a driver lived at the last look; without any announcement it counts as alive."""
        return self._gone_since is None

    def _read_announcement(self) -> None:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return
        if self._seen == (stat.st_mtime_ns, stat.st_ino):
            return
        try:
            value = json.loads(self._path.read_bytes())
            driver = {"pid": int(value["pid"]), "start_time": int(value["start_time"])}
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            return  # it is being written; the next look finds it whole
        self._driver, self._seen = driver, (stat.st_mtime_ns, stat.st_ino)
