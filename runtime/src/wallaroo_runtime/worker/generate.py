"""Lets a worker make the messages of a generator source."""

from wallaroo.message.frame import PLAIN
from wallaroo.message.handshake import GENERATE
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.idempotent_call import RESTART_SECONDS, IdempotentCalls

PRIVATE = 16  # encodings from here on are the worker's own

# Messages, their encoding, whether the generator has ended, and why it cannot go on (empty: it can).
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
    """Return the messages of an answer."""
    failure = reply.failure
    reason = f"{failure.code} {failure.message}" if reply.HasField("failure") else ""
    return list(reply.values), reply.encoding, reply.ended, reason


class WorkerMaker(IdempotentCalls):
    """Asks the worker at a gRPC target, also while it is restarted. Parameters are those of `IdempotentCalls`."""

    def __init__(self, target: str, path: str, timeout: float = RESTART_SECONDS) -> None:
        super().__init__(target, path, timeout, GENERATE, "a generator")

    def make(self, previous: bytes | None, encoding: int, max_count: int, max_bytes: int) -> Made:
        """Ask for the messages that follow `previous`.

        Args:
            previous: The last message that was kept, as an earlier answer had it; None: begin.
            encoding: Of that message, as that answer had it; 0: what the worker writes now.
            max_count: At most so many.
            max_bytes: The answer ends with the message that reaches it.

        Returns:
            The messages, their encoding, whether the generator has ended, and why it cannot go on (empty: it can).

        Raises:
            RunError: W410, the worker cannot be reached in time, or gives what was not asked for; W416, it has no
                generators.
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
