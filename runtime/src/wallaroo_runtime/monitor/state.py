"""Answers requests for states: names, pages and single keys, after the last committed micro-batch."""

import threading
from typing import Any, Protocol

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.monitor.answer import Answer, Query, limit_of

MOST_KEYS = 1000
PAGE_BYTES = 16 * 1024 * 1024  # limit for the states of a page, in their stored form
WAIT_S = 30.0


class States(Protocol):
    """Reads the states of a running application, as of its last committed micro-batch."""

    @property
    def names(self) -> list[str]:
        """The names of the states."""

    def batch(self) -> int:
        """Return the number of the last committed micro-batch."""

    def get(self, name: str, key: str) -> tuple[int, dict[str, Any]]:
        """Return the micro-batch and the state of a key."""

    def part(
        self, name: str, *, prefix: str = "", after: str = "", limit: int, page_bytes: int
    ) -> tuple[int, list[dict[str, Any]], str | None]:
        """Return the micro-batch, states in the order of keys, and the last key if further keys follow, else None."""


class StateRoutes:
    """The paths below `/api/v1/state`. Requests are processed one by one, since each is a job of Spark.

    Attributes:
        states: Reader of the states, which is set when the query runs.
        reason: Reason why there is no reader.
        fix: Remedy for this reason.
    """

    def __init__(self) -> None:
        self.states: States | None = None
        self.reason, self.fix = "the application is starting", "ask again later"
        self._turn = threading.Lock()

    def answer(self, path: str, query: Query) -> Answer:
        """Return the answer for a path.

        Args:
            path: Path after `/api/v1/state`: empty, `/NAME` or `/NAME/KEY`.
            query: Parameters of the URL.

        Raises:
            DiagnosticError: R720 if there is no such state or key; other errors if the states cannot be read.
        """
        states = self.states
        if states is None:
            return _unavailable(self.reason, self.fix)
        if not self._turn.acquire(timeout=WAIT_S):
            return _unavailable(f"other questions have not been answered within {WAIT_S:g} s", "ask again later")
        try:
            return self._answer(states, path.removeprefix("/"), query)
        finally:
            self._turn.release()

    def _answer(self, states: States, path: str, query: Query) -> Answer:
        if not path:
            return Answer.of({"batch": states.batch(), "states": states.names})
        name, key = _split(path, states.names)
        if key is not None:
            batch, row = states.get(name, key)
            return Answer.of({**row, "batch": batch})
        limit = limit_of(query, "100", MOST_KEYS)
        if isinstance(limit, Answer):
            return limit
        prefix, after = (query.get(each, [""])[0] for each in ("prefix", "after"))
        batch, rows, following = states.part(name, prefix=prefix, after=after, limit=limit, page_bytes=PAGE_BYTES)
        return Answer.of({"state": name, "batch": batch, "keys": rows, "next": following})


def _split(path: str, names: list[str]) -> tuple[str, str | None]:
    """Return name and key of a path `NAME/KEY`, where name and key may contain slashes; None for a missing key."""
    known = [name for name in names if path == name or path.startswith(f"{name}/")]
    name = max(known, key=len, default=path.partition("/")[0])
    return (name, None) if path == name else (name, path[len(name) + 1 :])


def _unavailable(reason: str, fix: str) -> Answer:
    return Answer.error(503, Diagnostic.of("R771", path="the application", reason=reason, fix=fix))
