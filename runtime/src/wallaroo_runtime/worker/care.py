"""What a task knows of a call that broke, and passes to the worker when it repeats the call."""

from dataclasses import dataclass, field

from wallaroo.diagnostic import Diagnostic
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.worker.ending import Blame, Cause

LEAST_SECONDS = 1.0  # that a message may take, whatever has hung before it
PATIENCE = 4  # times as long as others took


@dataclass(slots=True)
class Care:
    """What is known of one call that broke: which of its messages to leave out, and how to run it.

    Attributes:
        skips: The messages to leave out.
        is_alone: Whether no other call of the process may run a message meanwhile.
        is_careful: Whether messages run one by one, so that each is in flight while its state is written.

    Example:
        >>> care = Care()
        >>> care.learn(Blame(0, 7, Cause.KILLED, "it was ended by SIGKILL")), care.is_alone, len(care.skips)
        (False, True, 0)
        >>> care.learn(Blame(0, 7, Cause.KILLED, "it was ended by SIGKILL")), care.is_alone, care.skips[0].code
        (True, False, 'C508')
    """

    skips: list[pb.Skip] = field(default_factory=list)
    is_alone: bool = False
    is_careful: bool = False
    _suspect: int = -1

    def learn(self, blame: Blame) -> bool:
        """Take note of what happened; return whether it is certain which message is the cause, and it is seen to.

        Raises:
            ValueError: The message was to be left out already.
        """
        if blame.is_outside:
            return self._learn_outside(blame)
        if any(skip.ordinal == blame.ordinal for skip in self.skips):
            msg = f"it runs message {blame.ordinal} of a call, which it was asked to skip"
            raise ValueError(msg)
        is_certain = {
            Cause.HUNG: True,
            Cause.CRASHED: self.is_alone or not blame.is_shared,
            Cause.KILLED: self._suspect == blame.ordinal,
        }[blame.cause]
        if is_certain:
            self.skips.append(_skip(blame))
        self.is_alone = not is_certain
        self._suspect = blame.ordinal if blame.cause is Cause.KILLED and not is_certain else -1
        return is_certain

    def seconds(self, deadline: float, slowest: float) -> float:
        """Return how long a message may take: less for each one of the call that has hung before.

        Args:
            deadline: How long it may take where none has.
            slowest: How long other messages took.

        Example:
            >>> care = Care()
            >>> care.seconds(8, 0.1), care.learn(Blame(0, 7, Cause.HUNG, "8")), care.seconds(8, 0.1)
            (8, True, 4.0)
            >>> care.seconds(8, 1.5)
            6.0
        """
        hung = sum(skip.code == "C509" for skip in self.skips)
        return min(deadline, max(deadline / 2**hung, LEAST_SECONDS, PATIENCE * slowest)) if hung else deadline

    def is_beyond(self, blame: Blame) -> bool:
        """Say whether a state, and no message, ends the worker, as far as can be found out."""
        has_ended = blame.cause is Cause.HUNG or (
            blame.cause is Cause.CRASHED and (self.is_alone or not blame.is_shared)
        )
        return blame.is_outside and self.is_careful and has_ended

    def _learn_outside(self, blame: Blame) -> bool:
        """Let messages run one by one: the message that spoils a state is then in flight while it is written."""
        self.is_careful = self.is_careful or blame.cause is not Cause.KILLED
        self.is_alone = blame.is_shared and blame.cause is Cause.CRASHED
        return blame.cause is Cause.HUNG


def _skip(blame: Blame) -> pb.Skip:
    if blame.cause is Cause.HUNG:
        finding = Diagnostic.of("C509", seconds=blame.text)
    else:
        finding = Diagnostic.of("C508", reason=blame.text)
    return pb.Skip(ordinal=blame.ordinal, code=finding.code, reason=finding.message)
