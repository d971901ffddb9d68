"""Lets a worker cut the bytes of connections into messages, in a thread: a slow decoder delays no other source."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo_runtime.gateway.connection import Connection
from wallaroo_runtime.gateway.framing import Cut, Splitter, splitter_cut
from wallaroo_runtime.service._proto import service_pb2 as pb


class SplitThread:
    """Calls a source's splitter (its decoder, which finds the ends of messages) for one connection after another.

    Args:
        wake: Called in the thread of this object when there is an answer.
    """

    def __init__(self, splitter: Splitter, config: pb.Source, wake: Callable[[], None]) -> None:
        self._splitter, self._config, self._wake = splitter, config, wake
        self._questions: queue.SimpleQueue[tuple[Connection, bytes] | None] = queue.SimpleQueue()
        self._answers: deque[tuple[Connection, Cut | Diagnostic]] = deque()
        threading.Thread(target=self._run, name=f"split-{config.port}", daemon=True).start()

    def ask(self, connection: Connection, data: bytes) -> None:
        """Let the thread cut a connection's bytes into messages. `answers` yields the result later."""
        self._questions.put((connection, data))

    def answers(self) -> Iterator[tuple[Connection, Cut | Diagnostic]]:
        """Yield each connection that has an answer: a cut, or a diagnostic if the splitter failed."""
        while self._answers:
            yield self._answers.popleft()

    def close(self) -> None:
        """End the thread, without waiting for a call in progress."""
        self._questions.put(None)

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            connection, data = question
            self._answers.append((connection, self._ask(data)))
            self._wake()

    def _ask(self, data: bytes) -> Cut | Diagnostic:
        config = self._config
        try:
            return splitter_cut(self._splitter, data, config.header_bytes, config.max_message_bytes)
        except DiagnosticError as error:
            return error.diagnostics[0]
        except ValueError as error:
            return Diagnostic.of("W410", worker=config.name, reason=str(error))
