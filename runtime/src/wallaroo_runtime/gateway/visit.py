"""Takes visits (calls of user code for each key of a state), and writes them to the journal between messages."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from wallaroo.message.frame import VISIT_PORT
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.intake import Gathered, Intake
from wallaroo_runtime.storage.journal.visit import read_visited, read_visits, write_visits

PATIENCE_S, LOOK_S = 30.0, 0.1
MAX_METADATA_BYTES = 1 << 20  # the metadata are limited, since each bucket gets a copy
LOST = "ask again once it runs"


@dataclass(slots=True)
class PendingVisit:
    """A visit whose caller waits; `done` is set when the visit is safe in the journal, or when the intake closes."""

    name: str
    metadata: bytes
    id: int = 0
    frame: Gathered | None = None
    is_given_up: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class VisitIntake:
    """Takes visits from callers in other threads. A caller waits until its visit is safe in the journal.

    Args:
        names: Names of the visits that the application takes.
        wake: Makes the event loop call `turn`; any thread may call it.
    """

    def __init__(self, intake: Intake, names: Collection[str], wake: Callable[[], None]) -> None:
        self._intake, self._names, self._wake = intake, sorted(names), wake
        self._directory = intake.writer.directory
        self._known = read_visits(self._directory)
        self._done, self._looked_at = read_visited(self._directory).done, 0.0
        self._asked: deque[PendingVisit] = deque()
        self._written: list[PendingVisit] = []
        self._is_closed = False

    @property
    def open(self) -> int:
        """Number of visits in the journal that are not processed yet."""
        done = max(self._intake.committed, self._done)
        unsafe = sum(asked.frame is None or asked.frame.end < 0 for asked in self._written)
        return unsafe + sum(end > done for end in self._known.values())

    def ask(self, name: str, metadata: bytes, seconds: float = PATIENCE_S) -> int:
        """Write a visit to the journal, and wait until it is safe. Threads other than the event loop's may call this.

        Returns:
            Id of the visit.

        Raises:
            RunError: R720 if no step takes this visit; R733 if no step takes visits, or it cannot be journaled.
        """
        if not self._names:
            fix = "declare a visitor with a step that has state (docs/state.md)"
            raise RunError.of("R733", name=name[:200], reason="no step of the application takes visits", fix=fix)
        if name not in self._names:
            known = ", ".join(f'"{each}"' for each in self._names)
            raise RunError.of("R720", place="the application", what="visit", name=f'"{name[:200]}"', known=known)
        if len(metadata) > MAX_METADATA_BYTES:
            reason = f"its metadata has {len(metadata)} bytes"
            raise RunError.of("R733", name=name, reason=reason, fix=f"give at most {MAX_METADATA_BYTES}")
        asked = PendingVisit(name, metadata)
        self._asked.append(asked)
        self._wake()
        if asked.done.wait(seconds) and asked.id:
            return asked.id
        asked.is_given_up = True
        if self._is_closed:
            raise RunError.of("R733", name=name, reason="the gateway ends; it may be in the journal", fix=LOST)
        reason = f"the journal took nothing for {seconds:g} s; it may still take it"
        raise RunError.of("R733", name=name, reason=reason, fix="look at the run: sinks, or the disk, may hold it up")

    def turn(self) -> None:
        """Write waiting visits to the journal, and answer callers. Called once in every turn of the event loop."""
        while self._asked and self._intake.accepts:
            asked = self._asked.popleft()
            if not asked.is_given_up:
                self._write(asked)
        for asked in [each for each in self._written if self._is_safe(each)]:
            self._written.remove(asked)
            asked.done.set()
        if self.open and time.monotonic() >= self._looked_at + LOOK_S:
            self._done, self._looked_at = read_visited(self._directory).done, time.monotonic()

    def _write(self, asked: PendingVisit) -> None:
        asked.id = max(max(self._known, default=0) + 1, time.time_ns())
        visit = pb.Visit(id=asked.id, name=asked.name, metadata=asked.metadata)
        asked.frame = self._intake.control(VISIT_PORT, visit.SerializeToString())
        self._written.append(asked)

    def _is_safe(self, asked: PendingVisit) -> bool:
        frame = asked.frame
        if frame is None or not self._intake.has_safe(frame):
            return False
        self._known[asked.id] = frame.end
        write_visits(self._directory, self._known)
        return True

    def close(self) -> None:
        """Answer the callers of safe visits, and refuse all other callers. Called after the journal is closed."""
        self._is_closed = True
        self.turn()
        for asked in (*self._asked, *self._written):
            asked.id = 0
            asked.done.set()
