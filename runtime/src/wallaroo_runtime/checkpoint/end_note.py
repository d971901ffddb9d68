"""Notes in the checkpoint how each run ends, for `wallaroo status` and for the next run."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo_runtime.durable.file import disk_failure
from wallaroo_runtime.errors import TOPOLOGY, USAGE, RunError
from wallaroo_runtime.service.driver import DRIVER_FILE, DriverNote, announce, read_note

STOPPED, BROKEN_OFF = "it was stopped", "it was stopped while it started"
KILLED = "it ended without a word: it was killed, or the machine stopped"


@dataclass(slots=True)
class EndNote:
    """The reason why a run ends. The run sets this reason within the block of `noting_end`.

    Attributes:
        reason: The reason in words. It counts if the run ends without a failure.
        has_begun: Whether the checkpoint was opened for the run.
    """

    reason: str = STOPPED
    has_begun: bool = False


@contextmanager
def noting_end(checkpoint: Path, is_stop: Callable[[BaseException], bool] = lambda _: False) -> Iterator[EndNote]:
    """Note in the checkpoint how the run in the block ends. The block sets the reason of an end without failure.

    If a note has no end, its run was killed, and the next run counts it as failed. If the start of a run is refused, by
    the checkpoint or for a mistake of the user, the note keeps the end of the previous run. Each note replaces the
    previous one, so it needs no more room on a full disk. If the note cannot be written, the run still ends without an
    error.

    Args:
        checkpoint: The checkpoint directory.
        is_stop: Returns whether an error only means that a signal stopped the run while it started.
    """
    past = past_end(read_note(checkpoint / DRIVER_FILE))
    _note(checkpoint, is_running=True, **past)
    ended, failures, is_refused = EndNote(), 0, False
    try:
        yield ended
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or is_stop(error):
            ended.reason = BROKEN_OFF
        else:
            ended.reason, failures = _reason(error, checkpoint), past.get("failures", 0) + 1
            is_refused = isinstance(error, RunError) and (not ended.has_begun or error.exit_code in (USAGE, TOPOLOGY))
        raise
    finally:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        end = past if is_refused else {"time": now, "reason": ended.reason, "failures": failures}
        _note(checkpoint, is_running=False, **end)


def past_end(note: DriverNote) -> dict[str, Any]:
    """Return time and reason of the last end, and the number of failed runs in a row; empty if no run has ended.

    Read the note while no run uses the checkpoint.
    """
    if note.is_running:
        return {"time": "", "reason": KILLED, "failures": note.failures + 1}
    return running_note(note) if note.reason else {}


def running_note(note: DriverNote) -> dict[str, Any]:
    """Return the facts of a note about earlier runs: failures in a row, time and reason of the last end."""
    return {"failures": note.failures, "time": note.time, "reason": note.reason}


def failed_runs(end: Mapping[str, Any]) -> str:
    """Return in words how many runs have failed in a row; empty if the last run did not fail.

    Example:
        >>> failed_runs({"failures": 2, "time": "2026-11-26T10:00:00Z", "reason": "R611 the query stopped; no disk"})
        'the last 2 runs failed, most recently 2026-11-26T10:00:00Z: R611 the query stopped; no disk'
    """
    if not end.get("failures"):
        return ""
    runs = "the last run failed" if end["failures"] == 1 else f"the last {end['failures']} runs failed, most recently"
    return f"{runs}{end['time'] and ' '}{end['time']}: {end['reason']}"


def _reason(error: BaseException, checkpoint: Path) -> str:
    if isinstance(error, OSError):
        error = disk_failure(error, checkpoint) or error
    if isinstance(error, RunError):
        return "; ".join(f"{each.code} {each.message}" for each in error.diagnostics)
    return f"{type(error).__name__}: {error}"


def _note(checkpoint: Path, **fields: Any) -> None:
    with suppress(OSError):
        announce(checkpoint, monitor="", **fields)
