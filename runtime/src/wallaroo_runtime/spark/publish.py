"""Publishes what a micro-batch has staged, in the driver, once."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from wallaroo.fault import reach
from wallaroo.frame import DEAD_LETTER_PORT, read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.failure import TaskFailure
from wallaroo_runtime.spark.level import ReadCounts
from wallaroo_runtime.spark.placement import Homes
from wallaroo_runtime.spark.planned import Planned
from wallaroo_runtime.spark.row_sink import RowSinks
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.place import Output
from wallaroo_runtime.topology.model import Topology

FAIL = "fail"


def longest(files: Iterable[StagedFile]) -> list[StagedFile]:
    """Return each file once, as in the row that covers most of it, in order of partition and port.

    A task reports after each bucket how far its files have grown.
    """
    found: dict[str, StagedFile] = {}
    for file in files:
        known = found.get(file.path)
        if known is None or file.bytes > known.bytes:
            found[file.path] = file
    return sorted(found.values(), key=lambda file: (file.partition, file.port))


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """Which dead letters stop the query.

    Attributes:
        fails: What parts say that have nothing to say of their own: whether the query stops.
        parts: Path of each part that has a policy of its own to whether the query stops.
    """

    fails: bool = False
    parts: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: Topology, on_error: str = "") -> "ErrorPolicy":
        """Return the policy of a topology.

        Args:
            topology: Says what its parts do, and what is done where they say nothing.
            on_error: Goes before what the application says; empty: it says nothing.
        """
        parts = {part.path: part.on_error == FAIL for part in topology.parts() if part.on_error}
        return cls((on_error or topology.on_error) == FAIL, parts)

    @property
    def may_fail(self) -> bool:
        """Whether any dead letter stops the query."""
        return self.fails or any(self.parts.values())

    def stops_at(self, path: str) -> bool:
        """Say whether a dead letter of the part at `path` stops the query."""
        return self.parts.get(path, self.fails)


def first_that_stops(pieces: Iterable[bytes], policy: ErrorPolicy) -> pb.DeadLetter | None:
    """Return the dead letter of the earliest source message among those that stop the query."""
    first: pb.DeadLetter | None = None
    for data in pieces:
        for _, start, _ in split_frames(data):
            for letter in map(pb.DeadLetter.FromString, read_frame(data, start).values()):
                is_earlier = first is None or letter.sequence < first.sequence
                first = letter if is_earlier and policy.stops_at(letter.path) else first
    return first


class Publisher:
    """The function of `foreachBatch`; runs exactly one action, since each would run user code again.

    Attributes:
        failure: Why it stopped the query, when it did.
        batches: Micro-batches of this run.
        messages: Messages for sinks that this run has published.
        letters: Dead letters that this run has published.
        letters_before: Those that were published before.
        homes: The executor of each partition with state, as of the last micro-batch.
        endings: Processes of workers that ended by themselves, and what became of them.

    Args:
        outbox: Where to.
        policy: Which dead letters stop the query.
        rows: Sinks of Spark.
        counts: What tasks report to the driver.
        planned: What Spark has planned; None: nothing is reported to the outbox.
    """

    def __init__(
        self,
        outbox: Output,
        policy: ErrorPolicy,
        rows: RowSinks | None = None,
        counts: ReadCounts | None = None,
        planned: Planned | None = None,
    ) -> None:
        self.failure: RunError | None = None
        self._outbox, self._policy, self._rows = outbox, policy, rows
        self._counts, self._planned = counts, planned
        self.homes: Homes = {}
        self.endings: Homes = {}
        self.batches = self.messages = self.letters = self.letters_before = 0
        self._publishing, self._is_ended = threading.Lock(), False

    @property
    def records(self) -> int:
        """Messages for sinks of Spark that this run has written."""
        return 0 if self._rows is None else self._rows.records

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Publish one micro-batch; Spark may call again for a batch that was published already."""
        rows = frame.collect()
        with self._publishing:
            if self._is_ended:
                return
            try:
                if self._planned is not None:
                    query, offsets = self._planned.query, self._planned.offsets(batch)
                    self._publish(query, batch, longest(StagedFile(*row[1:]) for row in rows), offsets)
                elif rows:
                    self._publish(rows[0]["query"], batch, longest(StagedFile(*row[1:]) for row in rows))
            except RunError as error:
                self.failure = error
                raise TaskFailure(error) from error
        if self._counts is not None:
            self.homes, self.endings = self._counts.homes.value, self._counts.endings.value
        self.batches += 1
        reach("driver.before_commit")  # Spark commits when this has returned

    def end(self) -> None:
        """Wait for what is being published, and publish nothing more.

        To be called when the query has stopped: Spark does not wait for this function, and what it did afterwards
        would meet the outbox of the next run.
        """
        with self._publishing:
            self._is_ended = True

    def _publish(self, query: str, batch: int, files: list[StagedFile], offsets: str = "") -> None:
        letters = [file for file in files if file.port == DEAD_LETTER_PORT]
        if letters and self._policy.may_fail:
            self._stop_at_dead_letter(letters)
        reach("driver.before_publish")
        others = files if self._rows is None else self._rows.write(query, batch, files)
        if not self._outbox.publish(query, batch, others, offsets):
            return
        self.letters += sum(file.messages for file in letters)
        self.messages += sum(file.messages for file in files if file.port != DEAD_LETTER_PORT)

    def _stop_at_dead_letter(self, files: Iterable[StagedFile]) -> None:
        letter = first_that_stops((data for file in files for data in self._outbox.read_staged(file)), self._policy)
        if letter is None:
            return
        fix = "run with --on-error dead_letter"
        if letter.path in self._policy.parts:
            fix = f'give "{letter.step}" on_error "dead_letter"'
        raise RunError.of(
            "R611",
            reason=f"{letter.code} {letter.error}",
            fix=f"correct the user code and run again, or {fix}",
            traceback=letter.traceback,
        )
