"""The list of checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.process import Worker


@dataclass(frozen=True)
class Context:
    """What a check may use: the command, and one running worker that checks share."""

    command: str
    worker: Worker

    def start(self, variables: Mapping[str, str] | None = None) -> Worker:
        """Start a worker for one check alone, with some variables more, and shake hands."""
        worker = Worker(self.command, variables=variables)
        try:
            return worker.handshake()
        except BaseException:
            worker.close()
            raise

    def wrong_result(self) -> set[str]:
        """Return the codes of a wrong result type; a compiler may have ruled the type out."""
        return {"C503"} if self.worker.language == "python" else {"C503", "C501"}


Check = Callable[[Context], None]
CHECKS: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Add a function to the list of checks."""

    def add(function: Check) -> Check:
        assert name not in CHECKS
        CHECKS[name] = function
        return function

    return add
