"""Calls that change nothing in a worker, so that they may be repeated: make messages, cut bytes, show states."""

import json
from collections.abc import Iterable
from typing import Any

import grpc

from wallaroo.message.frame import PLAIN
from wallaroo.message.handshake import CAPABILITIES, GENERATE, PROTOCOLS, SHOW_STATE, SPLIT_FRAMES
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.rpc import WORKER_SERVICE, client
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.capability import lacking
from wallaroo_runtime.worker.endpoint import OPTIONS, remote_error

RESTART_SECONDS = 60.0
ATTEMPTS = 5  # tries of a call; some may fail before the supervisor notices that the worker has ended
PRIVATE = 16  # encodings from this number on have a meaning that the worker chooses
# Messages, their encoding, whether the generator has ended, and the reason why it cannot go on (empty if it can).
Generated = tuple[list[bytes], int, bool, str]

Shown = dict[tuple[int, bytes], Any]  # readable states, by port and key


class IdempotentCalls:
    """Sends requests to a worker. A handshake precedes the first request.

    Args:
        target: First endpoint of the worker, `unix:PATH`, which stays the same after a restart. For the subclass
            `LocalCalls` (`memory/local.py`) the worker in this process.
        path: Path of the source in the topology, or name of the worker whose states are shown; for requests and errors.
        capability: Capability that the worker must have.
        what: User of the capability, in words, for errors.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, target: Any, path: str, capability: str, what: str, timeout: float = RESTART_SECONDS) -> None:
        self.path, self.timeout = path, timeout
        self._channel = grpc.insecure_channel(target, options=OPTIONS)
        self._stub, self._capability, self._what = client(WORKER_SERVICE, self._channel), capability, what
        self._has_met = False

    def ask(self, method: str, request: Any, about: str) -> Any:
        """Return the answer to a request. Wait for the worker while it is being restarted.

        Args:
            about: Subject of the question, in words, for errors.

        Raises:
            RunError: W410 if there is no answer; W416 if the worker lacks the capability.
        """
        if not self._has_met:
            self._meet()
        return self._repeated(method, request, about)

    def _repeated(self, method: str, request: Any, about: str) -> Any:
        attempt = 1
        while True:
            try:
                return getattr(self._stub, method)(request, timeout=self.timeout, wait_for_ready=True)
            except grpc.RpcError as error:
                if attempt == ATTEMPTS or error.code() is not grpc.StatusCode.UNAVAILABLE:
                    reason = f"no answer about {about}; {error.code().name}: {error.details()}"
                    raise RunError.of("W410", WORKER, worker=self.path, reason=reason) from error
                attempt += 1

    def _meet(self) -> None:
        request = pb.InitRequest(protocol_min=PROTOCOLS[0], protocol_max=PROTOCOLS[1], capabilities=CAPABILITIES)
        reply = self._repeated("Init", request, "the handshake")
        if reply.HasField("failure"):
            raise remote_error(self.path, reply.failure)
        if self._capability not in reply.capabilities:
            lack = lacking(f'"{self._capability}"', self._what)
            raise RunError.of("W416", WORKER, worker=self.path, lack=lack)
        self._has_met = True

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


class WorkerMaker(IdempotentCalls):
    """Gets the messages of a generator from its worker, and waits while the worker restarts.

    The parameters are those of `IdempotentCalls`.
    """

    def __init__(self, target: Any, path: str) -> None:
        super().__init__(target, path, GENERATE, "a generator")

    def make(self, previous: bytes | None, encoding: int, max_count: int, max_bytes: int) -> Generated:
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
        request = pb.GenerateRequest(
            path=self.path,
            previous=previous or b"",
            previous_encoding=encoding,
            begins=previous is None,
            max_count=max_count,
            max_bytes=max_bytes,
        )
        reply: pb.GenerateReply = self.ask("Generate", request, "the next messages")
        self._check(reply, max_count, max_bytes)
        reason = f"{reply.failure.code} {reply.failure.message}" if reply.HasField("failure") else ""
        return list(reply.values), reply.encoding, reply.ended, reason

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


class WorkerSplitter(IdempotentCalls):
    """Lets a worker cut the bytes of a source into messages by its decoder. Waits while the worker restarts.

    Other parameters are those of `IdempotentCalls`.

    Args:
        max_message_bytes: Longest payload that the topology allows.
    """

    def __init__(self, target: Any, path: str, max_message_bytes: int) -> None:
        super().__init__(target, path, SPLIT_FRAMES, "a source that its decoder cuts")
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


class WorkerShower(IdempotentCalls):
    """Gets states from a worker in readable form, as JSON. Parameters as for `IdempotentCalls`."""

    def __init__(self, target: Any, worker: str, timeout: float = RESTART_SECONDS) -> None:
        super().__init__(target, worker, SHOW_STATE, "showing states", timeout)

    def show(self, stage: pb.Stage, entries: Iterable[bytes]) -> Shown:
        """Return the states that result from the entries of a state log, in readable form.

        Args:
            stage: A stage that begins with state.
            entries: Entries of its log, in total no larger than a message may be.

        Raises:
            RunError: W410 if the worker cannot be reached in time, or its reply is no JSON; W416 if it cannot show
                states; an error that the worker reports, e.g. C507.
        """
        reply = self.ask("ShowState", pb.ShowStateRequest(stage=stage, entries=entries), "states")
        if reply.HasField("failure"):
            raise remote_error(self.path, reply.failure)
        try:
            return {(state.port, state.key): json.loads(state.json) for state in reply.states}
        except ValueError as error:
            reason = f"ShowStateReply, field json: {error}"
            raise RunError.of("W410", WORKER, worker=self.path, reason=reason) from error
