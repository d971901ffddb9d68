"""Finds ends of workers on this machine that no task reports, because no task was calling the worker at that time."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from wallaroo_runtime.worker import control
from wallaroo_runtime.worker.ending import Ending

ASK_S = 0.5
LOOK_S = 5.0


class IdleEndings:
    """Compares the processes of workers with those at the last check, to find processes that have ended."""

    def __init__(self) -> None:
        self._looked_at = 0.0
        self._seen: dict[str, tuple[int, int]] = {}  # by name of the worker: generation and id of its process
        self._found: dict[int, str] = {}  # ended processes; the next `look` reports them unless tasks have done so

    def look(self, targets: Mapping[str, str], reported: Iterable[str]) -> Iterator[str]:
        """Yield a text for each worker process that has ended and that no task has reported.

        Args:
            targets: gRPC targets of the workers, by name.
            reported: Places of processes that tasks have reported.
        """
        now = time.monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        known = {place.rpartition(" ")[2] for place in reported}
        yield from (text for process, text in self._found.items() if str(process) not in known)
        self._found = {}
        for name, target in targets.items():
            if (directory := control.directory_of(target)) is not None:
                with contextlib.suppress(OSError, KeyError, ValueError):  # other code reports a lost supervisor
                    self._ask(name, directory)

    def _ask(self, name: str, directory: Path) -> None:
        state = control.ask(directory, {"op": "status"}, ASK_S)
        generation, process = int(state["generation"]), int(state["pid"])
        before, self._seen[name] = self._seen.get(name), (generation, process)
        if before is None or before[0] >= generation:
            return
        reply = control.ask(directory, {"op": "ending", "generation": before[0]}, ASK_S)
        ending = Ending.from_json(reply["ending"]) if reply.get("ending") else None
        how = ending.text if ending else "it has ended"
        self._found[before[1]] = f'worker "{name}", process {before[1]}: {how}; process {process} follows'
