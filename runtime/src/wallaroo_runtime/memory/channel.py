"""The way to a Python worker that is this process: the protocol's calls without a transport."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.call import CallRunner
from wallaroo_runtime.worker.channel import AnyStream, Broken, WorkerChannel
from wallaroo_runtime.worker.endpoint import remote_error
from wallaroo_runtime.worker.poison import Quarantine
from wallaroo_runtime.worker.spec import WorkerSpec


class Stub:
    """The methods of a gRPC stub that streams use, as calls of this process."""

    def __init__(self, calls: CallRunner) -> None:
        self.Process, self.ProcessState = calls.process, calls.process_state


class LocalChannel(WorkerChannel):
    """Runs the calls in this process; what ends the worker ends the process, and nothing has a deadline.

    Args:
        spec: Says what the worker is.
    """

    def __init__(self, spec: WorkerSpec, calls: CallRunner) -> None:
        super().__init__(spec)
        self.calls = calls

    @property
    def width(self) -> int:
        """One endpoint."""
        return 1

    def open(self, number: int, method: Callable[[Any], Any], opening: pb.Opening, request: type[Any]) -> AnyStream:
        """Begin a call."""
        stream = LocalStream(self, method(Stub(self.calls)))
        stream.send(request(opening=opening))
        return stream

    def close(self) -> None:
        """Leave the process as it is."""


class LocalSplitter:
    """Cuts the bytes of a source as its decoder says.

    Args:
        max_message_bytes: Longest payload.
    """

    def __init__(self, channel: LocalChannel, path: str, max_message_bytes: int) -> None:
        self._channel, self._path, self._limit = channel, path, max_message_bytes

    def split(self, data: bytes) -> tuple[list[int], int]:
        """Cut bytes that begin at a message boundary; returns the lengths, and the bytes of the next one (0: unknown).

        Raises:
            RunError: What the decoder raised.
        """
        request = pb.SplitRequest(path=self._path, data=data, max_message_bytes=self._limit)
        reply = self._channel.calls.split(request)
        if reply.HasField("failure"):
            raise remote_error(self._path, reply.failure)
        return list(reply.lengths), reply.wanted_bytes


class LocalStream:
    """One open call: requests wait in a queue until a reply is asked for."""

    def __init__(self, channel: LocalChannel, method: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        self._channel = channel
        self._requests: deque[Any] = deque()
        self._replies = method(iter(self._next, None))

    def _next(self) -> Any:
        return self._requests.popleft() if self._requests else None

    def arm(self, quarantine: Quarantine) -> None:
        """Do nothing, as `rest` and `resume`: a call in this process has no deadline."""

    def rest(self) -> None:
        """See `arm`."""

    def resume(self) -> None:
        """See `arm`."""

    def send(self, request: Any) -> None:
        """Put a request into the queue."""
        self._requests.append(request)

    def receive(self) -> Any:
        """Run the call up to its next reply.

        Raises:
            Broken: The worker says that trying again may help.
            RunError: What the worker reports.
        """
        reply = next(self._replies, None)
        if reply is None:
            msg = "it ended a stream that was not finished"
            raise self._channel.broke_rules(msg)
        if reply.HasField("failure"):
            self.close()
            self._channel.failed(reply.failure)
            raise Broken
        return reply

    def finish(self) -> None:
        """End the call.

        Raises:
            RunError: W410, the worker had something left to say.
        """
        late = next(self._replies, None)
        if late is not None:
            msg = f"{late.WhichOneof('kind') or 'an empty reply'} came after the last call was done"
            raise self._channel.broke_rules(msg)

    def close(self) -> None:
        """Give the call up."""
        close = getattr(self._replies, "close", None)
        if close is not None:
            close()
