"""A query that runs, in either mode."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.storage.progress import Progress


class Query(Protocol):
    """The query of a run."""

    @property
    def targets(self) -> Mapping[str, str]:
        """Map from the name of each worker to the gRPC target of its first endpoint."""
        ...

    @property
    def letters(self) -> LetterWatch:
        """The watch that chooses the dead letters to report."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether Spark's own sources have unprocessed messages."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether a micro-batch waits for sinks to take more of the outbox."""
        ...

    def exception(self) -> RunError | None:
        """Return why the query stopped by itself, or None."""
        ...

    def progress(self) -> Progress:
        """Return the progress of the query."""
        ...

    def new_findings(self) -> Sequence[Diagnostic]:
        """Return the findings since the last call. They do not end the query."""
        ...

    def latest(self) -> Mapping[str, Any]:
        """Return Spark's own report of the latest micro-batch; empty if there is none."""
        ...

    def stop(self) -> None:
        """Stop the query and its workers. The next run processes uncommitted input again."""
        ...
