"""Lets a worker cut bytes into messages, for sources whose framing only the user's decoder knows."""

from wallaroo.message.handshake import SPLIT_FRAMES
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.endpoint import remote_error
from wallaroo_runtime.worker.idempotent_call import RESTART_SECONDS, IdempotentCalls


class WorkerSplitter(IdempotentCalls):
    """Calls the worker at a gRPC target to cut bytes, and waits while the worker restarts.

    Other parameters are those of `IdempotentCalls`.

    Args:
        max_message_bytes: Longest payload that the topology allows.
    """

    def __init__(self, target: str, path: str, max_message_bytes: int, timeout: float = RESTART_SECONDS) -> None:
        super().__init__(target, path, timeout, SPLIT_FRAMES, "a source that its decoder cuts")
        self.max_message_bytes = max_message_bytes

    def split(self, data: bytes) -> tuple[list[int], int]:
        """Cut bytes that begin at a message boundary.

        Returns:
            Lengths of the whole messages at the start of `data`, and the length of the incomplete message after them; 0
            if it is not known.

        Raises:
            RunError: The error that the worker reports; W410 if the worker cannot be reached in time or its answer does
                not fit `data`; W416 if the worker cannot cut.
        """
        request = pb.SplitRequest(path=self.path, data=data, max_message_bytes=self.max_message_bytes)
        reply: pb.SplitReply = self.ask("SplitFrames", request, "framing")
        if reply.HasField("failure"):
            raise remote_error(self.path, reply.failure)
        if 0 in reply.lengths or sum(reply.lengths) > len(data):
            reason = f"SplitReply, field lengths: {list(reply.lengths)[:20]} for {len(data)} bytes"
            raise RunError.of("W410", WORKER, worker=self.path, reason=reason)
        return list(reply.lengths), reply.wanted_bytes
