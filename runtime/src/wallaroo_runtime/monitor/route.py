"""Makes the answers of the monitor for the paths of its URLs: page, status, metrics, dead letters, states."""

import base64
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, Family, Kind
from wallaroo_runtime.checkpoint.dead_letter import find_letter, is_chosen, latest_letters, letter_folder
from wallaroo_runtime.monitor.board import Board

if TYPE_CHECKING:
    from wallaroo_runtime.spark.state_store.state_query import StateQuery

API = "/api/v1/"
STATE = f"{API}state"
MOST_LETTERS = 500
MOST_KEYS = 1000
PAGE_BYTES = 16 * 1024 * 1024  # limit for the states of a page, in their stored form
WAIT_S = 30.0
JSON = "application/json"
Query = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an HTTP request.

    Attributes:
        body: The whole body.
        content_type: Content type of the body.
        status: HTTP status.
    """

    body: bytes
    content_type: str = JSON
    status: int = 200

    @classmethod
    def of(cls, value: Any, status: int = 200) -> "Answer":
        """Return an answer whose body is a value as JSON."""
        return cls(json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n", JSON, status)

    @classmethod
    def error(cls, status: int, finding: Diagnostic) -> "Answer":
        """Return an answer whose body is an error as JSON."""
        return cls.of(finding.to_json(), status)


def limit_of(query: Query, usual: str, most: int) -> int | Answer:
    """Return the parameter `limit` of a request, from 1 to `most`, or the answer for an invalid value."""
    text = query.get("limit", [usual])[0]
    if text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= most:
        return int(text)
    reason = f"the parameter limit is {text[:80]}; expected a number from 1 to {most}"
    return Answer.error(400, Diagnostic.of("R766", reason=reason))


@cache
def _page() -> bytes:
    return resources.files(__package__).joinpath("page.html").read_bytes()


class Routes:
    """Answers the requests for all paths of the monitor.

    Args:
        board: The board with the numbers of the run.

    Attributes:
        states: Answers for the paths below `/api/v1/state`.
    """

    def __init__(self, board: Board) -> None:
        self._board, self.states = board, StateRoutes()
        self._paths: Mapping[str, Callable[[Query, str], Answer]] = {
            "/": lambda query, accept: Answer(_page(), "text/html; charset=utf-8"),
            "/readyz": self._ready,
            "/metrics": self._metrics,
            f"{API}status": lambda query, accept: Answer.of(board.read()),
            f"{API}findings": lambda query, accept: Answer.of({"findings": board.read()["findings"]}),
            f"{API}dead-letters": self._letters,
        }

    def answer(self, path: str, query: Query, accept: str) -> Answer:
        """Return the answer to a request for a path of the monitor.

        Args:
            path: Decoded path of the URL.
            query: Parameters of the URL.
            accept: The request's header `Accept`.
        """
        try:
            if path in self._paths:
                return self._paths[path](query, accept)
            letter = path.removeprefix(f"{API}dead-letters/")
            if letter != path:
                return self._letter(letter)
            if path == STATE or path.startswith(f"{STATE}/"):
                return self.states.answer(path.removeprefix(STATE), query)
        except DiagnosticError as error:
            finding = error.diagnostics[0]
            is_away = finding.kind is Kind.UNAVAILABLE or finding.family is Family.WORKER
            return Answer.error(503 if is_away else 404, finding)
        known = ", ".join(sorted({*self._paths, "/healthz", f"{API}events", STATE}))
        return Answer.error(404, Diagnostic.of("R766", reason=f"it has no {path[:80]}; it has {known}"))

    def _ready(self, query: Query, accept: str) -> Answer:
        state = self._board.read()["state"]
        return Answer.of({"state": state}, 200 if state == "running" else 503)

    def _metrics(self, query: Query, accept: str) -> Answer:
        from wallaroo_runtime.monitor.metrics import render  # late import: most runs serve no metrics

        latencies = {stage: latency.total for stage, latency in self._board.latencies.histograms().items()}
        return Answer(*render(self._board.read(), latencies, accept))

    def _letters(self, query: Query, accept: str) -> Answer:
        limit = limit_of(query, "50", MOST_LETTERS)
        if isinstance(limit, Answer):
            return limit
        choose = is_chosen(query.get("code", [""])[0], query.get("step", [""])[0])
        letters = latest_letters(letter_folder(str(self._board.checkpoint)), limit, choose)
        return Answer.of({"dead_letters": [letter.summary() for letter in letters]})

    def _letter(self, name: str) -> Answer:
        letter = find_letter(letter_folder(str(self._board.checkpoint)), name)
        record = letter.record
        more = {"path": record.path, "traceback": record.traceback, "encoding": record.encoding}
        return Answer.of({**letter.summary(), **more, "input": {"base64": base64.b64encode(record.input).decode()}})


class StateRoutes:
    """Answers the requests for paths below `/api/v1/state`, one after the other, since each is a job of Spark.

    Attributes:
        states: Reader of the states, which is set when the query runs.
        reason: Reason why there is no reader.
        fix: Remedy for this reason.
    """

    def __init__(self) -> None:
        self.states: StateQuery | None = None
        self.reason, self.fix = "the application is starting", "ask again later"
        self._turn = threading.Lock()

    def answer(self, path: str, query: Query) -> Answer:
        """Return the answer to a request for a path of states.

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

    def _answer(self, states: "StateQuery", path: str, query: Query) -> Answer:
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
