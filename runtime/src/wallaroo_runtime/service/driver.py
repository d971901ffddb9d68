"""Records the driver of a checkpoint in `driver.json`, by which local services notice that the driver is gone."""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wallaroo_runtime.durable.file import NO_ROOM
from wallaroo_runtime.durable.record import pack_record, read_record, write_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.system.process import process_start_time

DRIVER_FILE = "driver.json"
SHORT = 500  # limit for the characters of a reason, so that a note fits into one disk block


@dataclass(frozen=True, slots=True)
class DriverNote:
    """The record of the latest driver: commands show it, and local services end after this driver has ended.

    Attributes:
        pid: Process of the latest driver; 0 if there was no driver.
        start_time: Start of that process in clock ticks since boot, since a pid alone is no identity.
        monitor: URL of its monitor, with the token; empty if it has no monitor.
        is_running: Whether the end of its run was not recorded: the driver runs, or was killed.
        time: Time at which the last run ended; empty if no run has ended, or the time is not known.
        reason: Reason why the last run ended; empty if no run has ended.
        failures: Number of runs in a row that have failed, up to the last run.
    """

    pid: int = 0
    start_time: int = 0
    monitor: str = ""
    is_running: bool = False
    time: str = ""
    reason: str = ""
    failures: int = 0


def read_note(path: Path) -> DriverNote:
    """Return the note in a checkpoint's `driver.json`; an empty note if the file is missing or damaged."""
    with suppress(RunError):
        return read_record(path, DriverNote) or DriverNote()
    return DriverNote()


def announce(checkpoint: Path, **fields: Any) -> None:
    """Record this process as the driver of a checkpoint, and set other fields of the note."""
    path, pid = checkpoint / DRIVER_FILE, os.getpid()
    own = replace(read_note(path), pid=pid, start_time=process_start_time(pid) or 0, **fields)
    try:
        write_record(path, own, durable=False)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _write_over(path, replace(own, reason=own.reason[:SHORT]))


def _write_over(path: Path, note: DriverNote) -> None:
    """Overwrite the former note in place, because a full disk has no room for a new file."""
    with path.open("r+b") as file:
        file.write(pack_record(note))
        file.truncate()


class DriverWatch:
    """Detects that a checkpoint has had no driver for so long that no driver is expected to come.

    If another driver announces itself, it is watched in place of the earlier driver. Before the first announcement no
    driver counts as gone.

    Args:
        path: File in which a driver announces itself.
        linger_s: Seconds for which to go on without a driver.
    """

    def __init__(self, path: Path, linger_s: float) -> None:
        self._path, self._linger_s = path, linger_s
        self._driver = DriverNote()
        self._seen: tuple[int, int] | None = None
        self._gone_since: float | None = None

    def expired(self, now: float) -> bool:
        """Check the driver now, and return whether it has been gone too long. `now` is a monotonic time in seconds."""
        self._read_announcement()
        if not self._driver.pid or process_start_time(self._driver.pid) == self._driver.start_time:
            self._gone_since = None
            return False
        if self._gone_since is None:
            self._gone_since = now
        return now - self._gone_since >= self._linger_s

    @property
    def has_driver(self) -> bool:
        """True if the driver was alive at the last check, or no driver has announced itself."""
        return self._gone_since is None

    def _read_announcement(self) -> None:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return
        seen = (stat.st_mtime_ns, stat.st_ino)
        if self._seen != seen and (note := read_note(self._path)).pid:
            self._driver, self._seen = note, seen
