"""Lets a worker make the messages of a generator source."""

from wallaroo.message.frame import PLAIN
from wallaroo.message.handshake import GENERATE
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.idempotent_call import RESTART_SECONDS, IdempotentCalls

PRIVATE = 16  # encodings from this number on have a meaning that the worker chooses

# Messages, their encoding, whether the generator has ended, and the reason why it cannot go on (empty if it can).
Made = tuple[list[bytes], int, bool, str]


def request_of(
    path: str, previous: bytes | None, encoding: int, *, max_count: int, max_bytes: int
) -> pb.GenerateRequest:
    """Return the request for the messages that follow `previous`; parameters as for `WorkerMaker.make`."""
    return pb.GenerateRequest(
        path=path,
        previous=previous or b"",
        previous_encoding=encoding,
        begins=previous is None,
        max_count=max_count,
        max_bytes=max_bytes,
    )


def made_of(reply: pb.GenerateReply) -> Made:
    """Return the content of a worker's reply."""
    failure = reply.failure
    reason = f"{failure.code} {failure.message}" if reply.HasField("failure") else ""
    return list(reply.values), reply.encoding, reply.ended, reason


class WorkerMaker(IdempotentCalls):
    """Calls the worker at a gRPC target to make messages, and waits while it restarts. See `IdempotentCalls`."""

    def __init__(self, target: str, path: str, timeout: float = RESTART_SECONDS) -> None:
        super().__init__(target, path, timeout, GENERATE, "a generator")

    def make(self, previous: bytes | None, encoding: int, max_count: int, max_bytes: int) -> Made:
        """Ask for the messages that follow `previous`.

        Args:
            previous: Last message of an earlier answer; None to begin.
            encoding: Encoding of `previous`, from the same answer; 0 for the encoding that the worker writes now.
            max_count: Limit for the number of messages.
            max_bytes: The answer ends with the message that reaches this size.

        Returns:
            The messages, their encoding, whether the generator has ended, and the reason why it cannot go on (empty if
            it can).

        Raises:
            RunError: W410 if the worker cannot be reached in time, or returns more messages than requested; W416 if the
                worker has no generators.
        """
        request = request_of(self.path, previous, encoding, max_count=max_count, max_bytes=max_bytes)
        reply: pb.GenerateReply = self.ask("Generate", request, "the next messages")
        self._check(reply, max_count, max_bytes)
        return made_of(reply)

    def _check(self, reply: pb.GenerateReply, max_count: int, max_bytes: int) -> None:
        size = sum(map(len, reply.values[:-1]))
        wrong = ""
        if len(reply.values) > max_count:
            wrong = f"values: {len(reply.values)} messages; at most {max_count} were asked for"
        elif size and size >= max_bytes:
            wrong = f"values: {size} bytes before the last message; {max_bytes} were asked for"
        elif reply.values and not (reply.encoding == PLAIN or PRIVATE <= reply.encoding <= 255):
            wrong = f"encoding: {reply.encoding}; expected {PLAIN} or {PRIVATE} to 255"
        if wrong:
            raise RunError.of("W410", WORKER, worker=self.path, reason=f"GenerateReply, field {wrong}")
