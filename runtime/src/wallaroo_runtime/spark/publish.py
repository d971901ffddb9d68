"""Publishes what a micro-batch has staged, in the driver, once."""

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame

from wallaroo.frame import DEAD_LETTER_PORT, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.egress.outbox import Outbox
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.failure import TaskFailure
from wallaroo_runtime.spark.row import StagedRow


def longest(rows: Iterable[StagedRow]) -> list[StagedRow]:
    """Return for each file the row that covers most of it, in order of partition and port.

    A task tells after each bucket how far its files have grown.
    """
    found: dict[str, StagedRow] = {}
    for row in rows:
        known = found.get(row.path)
        if known is None or row.bytes > known.bytes:
            found[row.path] = row
    return sorted(found.values(), key=lambda row: (row.partition, row.port))


def first_dead_letter(paths: Iterable[str]) -> pb.DeadLetter:
    """Return the dead letter of the earliest source message."""
    letters = []
    for path in paths:
        frame = read_frame(Path(path).read_bytes())
        letters += [pb.DeadLetter.FromString(value) for value in frame.values()]
    return min(letters, key=lambda letter: letter.sequence)


class Publisher:
    """The function of `foreachBatch`; runs exactly one action, since each would run user code again.

    Attributes:
        failure: Why it stopped the query, when it did.
    """

    def __init__(self, checkpoint: Path, *, fails: bool) -> None:
        self.failure: RunError | None = None
        self._fails = fails
        self._outbox = Outbox(checkpoint)
        self._batches = self._messages = self._letters = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Publish one micro-batch; Spark may call again for a batch that was published already."""
        try:
            self._publish(longest(StagedRow(*row) for row in frame.collect()), batch)
        except RunError as error:
            self.failure = error
            raise TaskFailure(error) from error

    def _publish(self, rows: list[StagedRow], batch: int) -> None:
        letters = [row for row in rows if row.port == DEAD_LETTER_PORT]
        if letters and self._fails:
            letter = first_dead_letter(row.path for row in letters)
            raise RunError.of(
                "R611",
                reason=f"{letter.code} {letter.step}: {letter.error}",
                fix="correct the user code and run again, or run with --on-error dead_letter",
                traceback=letter.traceback,
            )
        if rows:
            self._outbox.publish(rows[0].query, batch, rows)
        self._batches += 1
        self._letters += sum(row.messages for row in letters)
        self._messages += sum(row.messages for row in rows if row.port != DEAD_LETTER_PORT)

    def counts(self) -> dict[str, int]:
        """Return the counters of a `Progress` that this run has moved."""
        return {"batches": self._batches, "messages_out": self._messages, "dead_letters": self._letters}
