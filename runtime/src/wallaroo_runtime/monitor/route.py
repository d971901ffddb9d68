"""Answers requests to the monitor by their path."""

import base64
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, Family, Kind
from wallaroo_runtime.checkpoint.dead_letter import find_letter, find_letters, is_chosen, latest_letters
from wallaroo_runtime.monitor.answer import Answer, Query, limit_of
from wallaroo_runtime.monitor.board import Board
from wallaroo_runtime.monitor.state import StateRoutes

API = "/api/v1/"
STATE = f"{API}state"
MOST_LETTERS = 500


@cache
def _page() -> bytes:
    return resources.files(__package__).joinpath("page.html").read_bytes()


class Routes:
    """Answers requests for all paths of the monitor, from one board.

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
        """Return the answer for a path.

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
        letters = latest_letters(find_letters(str(self._board.checkpoint)), limit, choose)
        return Answer.of({"dead_letters": [letter.summary() for letter in letters]})

    def _letter(self, name: str) -> Answer:
        letter = find_letter(find_letters(str(self._board.checkpoint)), name)
        record = letter.record
        more = {"path": record.path, "traceback": record.traceback, "encoding": record.encoding}
        return Answer.of({**letter.summary(), **more, "input": {"base64": base64.b64encode(record.input).decode()}})
