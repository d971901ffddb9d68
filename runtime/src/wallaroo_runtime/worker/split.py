"""Lets a worker cut bytes into messages, for sources whose framing only the user's decoder knows."""

import grpc

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker._proto.worker_pb2_grpc import WorkerStub
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.endpoint import OPTIONS, remote_error
from wallaroo_runtime.worker.retry import RESTART_SECONDS, repeated


class WorkerSplitter:
    """Asks the worker at a gRPC target; waits for it while it is being restarted.

    Args:
        target: First endpoint of the worker, `unix:PATH`; it stays the same over restarts.
        path: Path of the source in the topology.
        max_message_bytes: Longest payload that the topology allows.
        timeout: How long to wait for an answer, in seconds.
    """

    def __init__(self, target: str, path: str, max_message_bytes: int, timeout: float = RESTART_SECONDS) -> None:
        self.path, self.max_message_bytes, self.timeout = path, max_message_bytes, timeout
        self._channel = grpc.insecure_channel(target, options=OPTIONS)
        self._stub = WorkerStub(self._channel)

    def split(self, data: bytes) -> tuple[list[int], int]:
        """Cut bytes that begin at a message boundary.

        Returns:
            Lengths of the whole messages at the start of `data`, and how many bytes the next one has (0: not known).

        Raises:
            RunError: What the worker reports, or W410 when it cannot be reached in time.
        """
        request = pb.SplitRequest(path=self.path, data=data, max_message_bytes=self.max_message_bytes)
        reply: pb.SplitReply = repeated(
            self._stub.SplitFrames, request, path=self.path, about="framing", timeout=self.timeout
        )
        if reply.HasField("failure"):
            raise remote_error(self.path, reply.failure)
        if 0 in reply.lengths or sum(reply.lengths) > len(data):
            reason = f"SplitReply, field lengths: {list(reply.lengths)[:20]} for {len(data)} bytes"
            raise RunError.of("W410", WORKER, worker=self.path, reason=reason)
        return list(reply.lengths), reply.wanted_bytes

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
