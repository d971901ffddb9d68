"""A query that runs, in either mode."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.storage.progress import Progress


class Query(Protocol):
    """What a run asks of its query."""

    @property
    def targets(self) -> Mapping[str, str]:
        """Name of each worker to the gRPC target of its first endpoint."""
        ...

    @property
    def letters(self) -> LetterWatch:
        """Knows which dead letters are to be reported."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether Spark's own sources have something that is not processed."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether a micro-batch waits for sinks to take more of the outbox."""
        ...

    def exception(self) -> RunError | None:
        """Return why the query stopped by itself, or None."""
        ...

    def progress(self) -> Progress:
        """Return how far the query has come."""
        ...

    def new_findings(self) -> Sequence[Diagnostic]:
        """Return what was found wrong since the last call and does not end the query."""
        ...

    def latest(self) -> Mapping[str, Any]:
        """Return Spark's own report of the latest micro-batch; empty: there is none."""
        ...

    def stop(self) -> None:
        """Stop the query and its workers; what is not committed is processed again by the next run."""
        ...
