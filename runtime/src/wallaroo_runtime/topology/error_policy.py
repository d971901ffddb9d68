"""Decides which dead letters stop an application, by its `on_error`, and makes the error for the user."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.topology.dead_letter_text import letter_words
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.worker import Worker

FAIL = "fail"
TOO_LARGE, RESEND = "R606", "send the record again in parts, and"  # the record in the topic or journal stays too large
CORRECT, SHORTEN = "correct the user code", "make the message smaller at its origin, or delete it there,"
GOKA = "goka.(*group)."  # begins the symbols of the components of Goka groups in a Go program
REMEDY, GO_REMEDY, GOKA_REMEDY = (
    'give "{name}" on_error "dead_letter"',
    'give "{name}" .OnError("dead_letter")',
    'give the processor of "{name}" the option goka.WithDeadLetters()',
)


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """Decides for each part whether its dead letters stop the query.

    Attributes:
        fails: Whether a dead letter stops the query if its part has no policy of its own.
        parts: For the path of each part with a policy of its own, whether its dead letters stop the query.
        remedies: For the path of each such part, the change of the program that lets the query continue. In the text,
            `{name}` stands for the part's name.
    """

    fails: bool = False
    parts: Mapping[str, bool] = field(default_factory=dict)
    remedies: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: Topology, on_error: str = "") -> "ErrorPolicy":
        """Return the policy of a topology.

        Args:
            topology: Has the policies of its parts, and the one of the application for other parts.
            on_error: Overrides the policy of the application; empty overrides nothing.
        """
        parts = {part.path: part.on_error == FAIL for part in topology.parts() if part.on_error}
        workers = {worker.name: worker for worker in topology.workers}
        remedies = {part.path: _remedy(workers.get(part.worker)) for part in topology.parts() if part.on_error}
        return cls((on_error or topology.on_error) == FAIL, parts, remedies)

    @property
    def may_fail(self) -> bool:
        """Whether the dead letters of at least one part stop the query."""
        return self.fails or any(self.parts.values())

    def stops_at(self, path: str) -> bool:
        """Say whether a dead letter of the part at `path` stops the query."""
        return self.parts.get(path, self.fails)


def _remedy(worker: Worker | None) -> str:
    """Return the change of the program by which dead letters of a part no longer stop the query."""
    if worker is None or worker.language != "go":
        return REMEDY
    return GOKA_REMEDY if any(each.symbol.startswith(GOKA) for each in worker.components) else GO_REMEDY


def stop_at_dead_letter(letters: Iterable[pb.DeadLetter], policy: ErrorPolicy) -> None:
    """Raise an error if one of the dead letters stops the query.

    Raises:
        RunError: R611 with the text of the dead letter whose source message is the earliest.
    """
    if stopping := [letter for letter in letters if policy.stops_at(letter.path)]:
        raise stopped_by(min(stopping, key=lambda letter: letter.sequence), policy)


def stopped_by(letter: pb.DeadLetter, policy: ErrorPolicy) -> RunError:
    """Return the error for a dead letter that stops the query (R611), with the letter's text."""
    fix = "run with --on-error dead_letter"
    if letter.path in policy.parts:
        fix = policy.remedies.get(letter.path, REMEDY).format(name=letter.step)
    if letter.code == TOO_LARGE and letter.HasField("origin"):
        fix = f"{RESEND} {fix}"
    else:
        fix = f"{SHORTEN if letter.code == TOO_LARGE else CORRECT} and run again, or {fix}"
    reason = f"{letter.code} {letter.error}{letter_words(letter)}"
    return RunError.of("R611", reason=reason, fix=fix, traceback=letter.traceback)
