"""Reads the requests of a stream of bucket calls: frames of messages, and the state logs that the worker needs."""

from collections import deque
from collections.abc import Iterator

from wallaroo.worker._proto import worker_pb2 as pb


class BucketProtocolError(Exception):
    """The client broke the protocol."""


class BucketRequests:
    """Reads the requests of a stream. Keeps calls that come while the worker waits for a state log."""

    def __init__(self, requests: Iterator[pb.Request]) -> None:
        self._requests = requests
        self._waiting: deque[pb.Bucket] = deque()  # requests that came while a state log was awaited

    def first(self) -> pb.Bucket | None:
        """Return the first request of the next call; None if the stream has ended.

        Raises:
            BucketProtocolError: The next request is of another kind.
        """
        if self._waiting:
            return self._waiting.popleft()
        request = next(self._requests, None)
        if request is None:
            return None
        if request.WhichOneof("kind") != "bucket":
            msg = f"expected a bucket call, got {request.WhichOneof('kind')}"
            raise BucketProtocolError(msg)
        return request.bucket

    def following(self, index: int) -> pb.Bucket:
        """Return the next request of a call that has begun.

        Raises:
            BucketProtocolError: The next request is of another kind or call, or the stream has ended.
        """
        request = self.first()
        if request is None:
            msg = f"the stream ended in the middle of call {index}"
            raise BucketProtocolError(msg)
        if request.index != index:
            msg = f"expected messages of call {index}, got those of call {request.index}"
            raise BucketProtocolError(msg)
        return request

    def part(self, request: pb.Bucket) -> tuple[pb.Bucket, list[bytes]]:
        """Read a part of a call: the requests from `request` on, until the client wants the outputs of this part.

        Return the part's last request, which has `release` or ends the call, and the frames of all its requests.

        Raises:
            BucketProtocolError: The part has no end.
        """
        frames: list[bytes] = []
        while True:
            if request.frames:
                frames.append(request.frames)
            if request.release and not request.more:
                msg = f"a request with release ends call {request.index}"
                raise BucketProtocolError(msg)
            if request.release or not request.more:
                return request, frames
            request = self.following(request.index)

    def log(self, index: int) -> pb.StateLog:
        """Return the next request with entries of the state log that a call needs.

        Raises:
            BucketProtocolError: A request of another kind came. Only bucket calls may come before the log.
        """
        for request in self._requests:
            if request.WhichOneof("kind") == "bucket":
                self._waiting.append(request.bucket)
                continue
            if request.WhichOneof("kind") != "log" or request.log.index != index:
                msg = f"expected the state log of call {index}, got {request.WhichOneof('kind')}"
                raise BucketProtocolError(msg)
            return request.log
        msg = f"the stream ended before the state log of call {index}"
        raise BucketProtocolError(msg)
