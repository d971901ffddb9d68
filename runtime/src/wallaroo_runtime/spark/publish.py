"""Publishes what a micro-batch has staged, in the driver, once."""

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame

from wallaroo.frame import DEAD_LETTER_PORT, read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.egress import Outbox, StagedFile
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.fault import reach
from wallaroo_runtime.spark.failure import TaskFailure


def longest(files: Iterable[StagedFile]) -> list[StagedFile]:
    """Return each file once, as the row tells that covers most of it, in order of partition and port.

    A task tells after each bucket how far its files have grown.
    """
    found: dict[str, StagedFile] = {}
    for file in files:
        known = found.get(file.path)
        if known is None or file.bytes > known.bytes:
            found[file.path] = file
    return sorted(found.values(), key=lambda file: (file.partition, file.port))


def first_dead_letter(paths: Iterable[str]) -> pb.DeadLetter:
    """Return the dead letter of the earliest source message."""
    letters: list[pb.DeadLetter] = []
    for path in paths:
        data = Path(path).read_bytes()
        for _, start, _ in split_frames(data):
            letters += [pb.DeadLetter.FromString(value) for value in read_frame(data, start).values()]
    first: pb.DeadLetter = min(letters, key=lambda letter: letter.sequence)
    return first


class Publisher:
    """The function of `foreachBatch`; runs exactly one action, since each would run user code again.

    Attributes:
        failure: Why it stopped the query, when it did.
    """

    def __init__(self, outbox: Outbox, *, fails: bool) -> None:
        self.failure: RunError | None = None
        self._outbox, self._fails = outbox, fails
        self._batches = self._messages = self._letters = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Publish one micro-batch; Spark may call again for a batch that was published already."""
        rows = frame.collect()
        try:
            if rows:
                self._publish(rows[0]["query"], batch, longest(StagedFile(*row[1:]) for row in rows))
        except RunError as error:
            self.failure = error
            raise TaskFailure(error) from error
        self._batches += 1
        reach("driver.before_commit")  # Spark commits when this has returned

    def _publish(self, query: str, batch: int, files: list[StagedFile]) -> None:
        letters = [file for file in files if file.port == DEAD_LETTER_PORT]
        if letters and self._fails:
            letter = first_dead_letter(file.path for file in letters)
            raise RunError.of(
                "R611",
                reason=f"{letter.code} {letter.error}",
                fix="correct the user code and run again, or run with --on-error dead_letter",
                traceback=letter.traceback,
            )
        reach("driver.before_publish")
        if not self._outbox.publish(query, batch, files):
            return
        self._letters += sum(file.messages for file in letters)
        self._messages += sum(file.messages for file in files if file.port != DEAD_LETTER_PORT)

    def counts(self) -> dict[str, int]:
        """Return the counters of a `Progress` that this run has moved."""
        return {"batches": self._batches, "messages_out": self._messages, "dead_letters": self._letters}
