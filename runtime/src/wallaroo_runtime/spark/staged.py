"""Files with the outputs of one task attempt."""

from wallaroo_runtime.egress import StagedFile, StagingWriter
from wallaroo_runtime.spark.level import Attempt


class Staged(StagingWriter):
    """A staging writer that can say how far its files have grown.

    A state stage learns only after its last row that it was the last one, when Spark takes no more rows from it. It
    therefore tells after each bucket what it has written so far, and finishes the files when Spark closes it.
    """

    def __init__(self, directory: str, attempt: Attempt) -> None:
        super().__init__(directory, attempt.query, attempt.batch, attempt.partition, attempt.stage, attempt.attempt)

    def so_far(self) -> list[StagedFile]:
        """Return what was written until now, as `finish` would if nothing more came."""
        return [
            StagedFile(port, str(staged.path), staged.bytes, staged.crc32, staged.messages, self._partition)
            for port, staged in sorted(self._files.items())
        ]
