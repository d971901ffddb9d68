"""Makes the calls of the worker protocol to a Python worker in this process, without a transport."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.call import CallRunner
from wallaroo_runtime.worker.client import CallClient, CallStream
from wallaroo_runtime.worker.idempotent_call import IdempotentCalls, WorkerMaker, WorkerSplitter
from wallaroo_runtime.worker.spec import WorkerSpec


class LocalClient(CallClient):
    """Calls a worker in this process. If the worker crashes, this process ends. Calls have no deadline.

    Args:
        spec: Describes the worker.
    """

    def __init__(self, spec: WorkerSpec, calls: CallRunner) -> None:
        super().__init__(spec)
        self.calls = calls

    def open(self, number: int, method: str, opening: pb.Opening) -> CallStream:
        """Begin a call, and return its stream."""
        stream = LocalStream(self, self.calls.process if method == "Process" else self.calls.process_state)
        stream.send(pb.Request(opening=opening))
        return stream

    def close(self) -> None:
        """Do nothing: the worker is this process."""


class LocalStream(CallStream):
    """A call to a worker in this process. The worker reads the queued requests when the caller reads a reply."""

    def __init__(self, client: CallClient, method: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        self._requests: deque[Any] = deque()
        super().__init__(client, method(iter(self._next, None)))

    def _next(self) -> Any:
        return self._requests.popleft() if self._requests else None

    def send(self, request: Any) -> None:
        """Put a request into the queue."""
        self._requests.append(request)

    def close(self) -> None:
        """Abandon the call."""
        close = getattr(self._replies, "close", None)
        if close is not None:
            close()


class LocalCalls(IdempotentCalls):
    """Sends requests to a worker in this process."""

    def __init__(self, target: CallRunner, path: str, *_: Any) -> None:
        self.path = path
        self._methods = {"SplitFrames": target.split, "Generate": target.generate, "ShowState": target.show_state}

    def ask(self, method: str, request: Any, about: str) -> Any:
        """Return the answer to a request."""
        return self._methods[method](request)


class LocalSplitter(WorkerSplitter, LocalCalls):
    """Cuts the bytes of a source into messages, with the decoder in this process."""


class LocalMaker(WorkerMaker, LocalCalls):
    """Gets the messages of a generator in this process."""
