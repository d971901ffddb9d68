"""Lets workers make the messages of generator sources. Stops while a few MiB of messages are not processed."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo_runtime.gateway.intake import Intake
from wallaroo_runtime.gateway.source_progress import Last
from wallaroo_runtime.service._proto import service_pb2 as pb

AHEAD_BYTES = 4 * 1024 * 1024
REPLY_BYTES = 512 * 1024
MOST_MESSAGES = 1 << 16
SLOW_S, FAST_S = 0.1, 0.02


class Maker(Protocol):
    """Makes the messages of one generator source, by calls of a worker."""

    def make(
        self, previous: bytes | None, encoding: int, max_count: int, max_bytes: int
    ) -> tuple[list[bytes], int, bool, str]:
        """Return the messages that follow `previous`, or the first messages if it is None.

        Args:
            previous: Last message of an earlier answer.
            encoding: Encoding of `previous`, from the same answer; 0 if it is not known.
            max_count: Limit for the number of messages.
            max_bytes: The answer ends with the message that reaches this size.

        Returns:
            The messages, their encoding, whether the generator has ended, and the reason why it cannot go on (empty if
            it can).

        Raises:
            DiagnosticError: The worker does not answer.
        """


@dataclass(slots=True)
class MakerAnswer:
    """One answer of `Maker.make`."""

    values: list[bytes]
    encoding: int = 0
    ended: bool = False
    finding: Diagnostic | None = None


@dataclass(slots=True)
class MessageGenerator:
    """One generator source: requests messages from its maker in a thread, one call at a time.

    A call requests few messages from a slow generator, so that the gateway takes each message soon after it is made.

    Attributes:
        last: Last message that the journal has; None before the first one.
        wake: Called in the thread when an answer has come.
        messages: Number of messages since the start.
        waits: Whether the generator is too far ahead, and waits until more of its messages are processed.
        is_asked: Whether a call is in progress, or its answer is not taken yet.
        max_count: Number of messages that the next call requests at most.
        made: Answers that are not taken yet.
        ahead: Ends of the answers in the journal that are not processed yet, as offsets.
    """

    config: pb.Generator
    maker: Maker
    last: Last | None
    wake: Callable[[], None]
    messages: int = 0
    ended: bool = False
    waits: bool = False
    is_asked: bool = False
    max_count: int = 1
    made: deque[MakerAnswer] = field(default_factory=deque)
    ahead: deque[int] = field(default_factory=deque)
    _questions: queue.SimpleQueue[bool] = field(default_factory=queue.SimpleQueue)

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name=f"generate-{self.config.port}", daemon=True).start()

    def ask(self) -> None:
        """Request the next messages. The thread adds the answer to `made`, and calls `wake`."""
        self.is_asked = True
        self._questions.put(True)

    def close(self) -> None:
        """End the thread, without waiting for a call in progress."""
        self._questions.put(False)

    def _run(self) -> None:
        while self._questions.get():
            began = time.monotonic()
            self.made.append(self._make())
            spent = time.monotonic() - began
            if spent < FAST_S:
                self.max_count = min(2 * self.max_count, MOST_MESSAGES)
            elif spent > SLOW_S:
                self.max_count = max(1, self.max_count // 2)
            self.wake()

    def _make(self) -> MakerAnswer:
        try:
            previous, known = (self.last.value, self.last.encoding) if self.last is not None else (None, 0)
            values, encoding, ended, reason = self.maker.make(previous, known, self.max_count, REPLY_BYTES)
        except DiagnosticError as error:
            return MakerAnswer([], ended=True, finding=error.diagnostics[0])
        if not reason and not values and not ended:
            reason = "it gave no message and did not end"
        finding = Diagnostic.of("R670", source=self.config.name, reason=reason) if reason else None
        return MakerAnswer(values, encoding, ended or bool(reason), finding)


class Generators:
    """The generator sources of a gateway.

    Args:
        generators: Generator sources, each with its last message.
    """

    def __init__(self, generators: list[MessageGenerator], intake: Intake, say: Callable[[Diagnostic], None]) -> None:
        self._generators, self._intake, self._say = generators, intake, say
        for generator in generators:
            generator.start()

    @property
    def wait(self) -> bool:
        """True if a generator waits until more of its messages are processed."""
        return any(generator.waits for generator in self._generators)

    def turn(self) -> None:
        """Take the generated messages, and request more if there is room. Called in every turn of the event loop."""
        for generator in self._generators:
            while generator.made:
                generator.is_asked = False
                self._take(generator, generator.made.popleft())
            while generator.ahead and generator.ahead[0] <= self._intake.committed:
                generator.ahead.popleft()
            end = self._intake.writer.end.offset
            generator.waits = bool(generator.ahead) and end - generator.ahead[0] >= AHEAD_BYTES
            if not (generator.is_asked or generator.ended or generator.waits) and self._intake.accepts:
                generator.ask()

    def _take(self, generator: MessageGenerator, answer: MakerAnswer) -> None:
        if answer.values:
            self._intake.take_values(generator.config.port, answer.values, answer.encoding)
            generator.ahead.append(self._intake.writer.end.offset)
            generator.last = Last(answer.values[-1], answer.encoding)
            generator.messages += len(answer.values)
        generator.ended = answer.ended
        if answer.finding is not None:
            self._say(answer.finding)

    def status(self) -> list[dict[str, Any]]:
        """Return the progress of each generator, for the status file."""
        return [
            {"name": generator.config.name, "messages": generator.messages, "ended": generator.ended}
            for generator in self._generators
        ]

    def close(self) -> None:
        """End the threads."""
        for generator in self._generators:
            generator.close()
