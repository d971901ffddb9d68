"""Which dead letters stop an application, and the first one that does."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.origin import record_words

FAIL = "fail"


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """Which dead letters stop the query.

    Attributes:
        fails: What parts say that have nothing to say of their own: whether the query stops.
        parts: Path of each part that has a policy of its own to whether the query stops.
    """

    fails: bool = False
    parts: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: Topology, on_error: str = "") -> "ErrorPolicy":
        """Return the policy of a topology.

        Args:
            topology: Says what its parts do, and what is done where they say nothing.
            on_error: Goes before what the application says; empty: it says nothing.
        """
        parts = {part.path: part.on_error == FAIL for part in topology.parts() if part.on_error}
        return cls((on_error or topology.on_error) == FAIL, parts)

    @property
    def may_fail(self) -> bool:
        """Whether any dead letter stops the query."""
        return self.fails or any(self.parts.values())

    def stops_at(self, path: str) -> bool:
        """Say whether a dead letter of the part at `path` stops the query."""
        return self.parts.get(path, self.fails)


def first_that_stops(letters: Iterable[pb.DeadLetter], policy: ErrorPolicy) -> pb.DeadLetter | None:
    """Return the dead letter of the earliest source message among those that stop the query."""
    first: pb.DeadLetter | None = None
    for letter in letters:
        is_earlier = first is None or letter.sequence < first.sequence
        first = letter if is_earlier and policy.stops_at(letter.path) else first
    return first


def stop_at_dead_letter(letters: Iterable[pb.DeadLetter], policy: ErrorPolicy) -> None:
    """Refuse dead letters that stop the query.

    Raises:
        RunError: R611, with what the earliest of them says.
    """
    letter = first_that_stops(letters, policy)
    if letter is not None:
        raise stopped_by(letter, policy)


def stopped_by(letter: pb.DeadLetter, policy: ErrorPolicy) -> RunError:
    """Return an R611 with what a dead letter says that stops the query."""
    fix = "run with --on-error dead_letter"
    if letter.path in policy.parts:
        fix = f'give "{letter.step}" on_error "dead_letter"'
    place = (words := record_words(letter)) and f" ({words})"
    return RunError.of(
        "R611",
        reason=f"{letter.code} {letter.error}{place}",
        fix=f"correct the user code and run again, or {fix}",
        traceback=letter.traceback,
    )
