"""The interface of a running query, of micro-batches or in real-time mode."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.storage.progress import Progress


class Query(Protocol):
    """The running query of an application."""

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
        """Whether a micro-batch is running, or Spark's own sources have unprocessed messages."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether a micro-batch waits until sinks have taken enough output from the outbox."""
        ...

    def exception(self) -> RunError | None:
        """Return the error that ended the query; None if there is no such error."""
        ...

    def progress(self) -> Progress:
        """Return the progress of the query."""
        ...

    def new_findings(self) -> Sequence[Diagnostic]:
        """Return the findings since the last call. None of them ends the query."""
        ...

    def latest(self) -> Mapping[str, Any]:
        """Return Spark's own report of the latest micro-batch; empty if there is none."""
        ...

    def stop(self) -> None:
        """Stop the query and its workers. The next run processes uncommitted input again."""
        ...
