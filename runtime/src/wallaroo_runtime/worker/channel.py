"""One task's way to its worker: streams that survive the worker's death."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any, Protocol

import grpc

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host import trace
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.audit import DamageError, RuleError
from wallaroo_runtime.worker.capability import check_capabilities
from wallaroo_runtime.worker.deadline import Deadline
from wallaroo_runtime.worker.discovery import ensure_worker, excuse_endings, find_ending, kill_worker, recover_worker
from wallaroo_runtime.worker.endpoint import Endpoints, connect, remote_error
from wallaroo_runtime.worker.flight import FlightFile, InFlight, Mark
from wallaroo_runtime.worker.launch import NO_MEMORY
from wallaroo_runtime.worker.owner_process import Owner
from wallaroo_runtime.worker.poison import Cause, Ending, Quarantine, Suspect
from wallaroo_runtime.worker.spec import WorkerSpec

BROKEN_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DATA_LOSS,
    }
)
BROKEN_LIMIT, RETRY_LIMIT, DEADLINE_LIMIT = 30, 3, 2

_open: dict[str, Endpoints] = {}  # by digest of the spec; a PySpark worker process runs many tasks
_endings: dict[int, str] = {}  # by process id; for the driver to report


class Broken(Exception):
    """The stream ended before its time; what was not answered is to be sent again.

    Args:
        suspect: The message of this stream that was in flight, if it is a suspect.
    """

    def __init__(self, suspect: Suspect | None = None) -> None:
        super().__init__()
        self.suspect = suspect


class AnyStream(Protocol):
    """One open call: what `Stream` has, wherever the worker is."""

    def arm(self, quarantine: Quarantine) -> None:
        """Begin to wait for the answer of a call, as long as is right for it."""

    def rest(self) -> None:
        """Wait for no answer for a while."""

    def resume(self) -> None:
        """Wait for an answer again."""

    def send(self, request: Any) -> None:
        """Send a request."""

    def receive(self) -> Any:
        """Return the next reply, or raise `Broken`."""

    def finish(self) -> None:
        """Close this side and wait for the other."""

    def close(self) -> None:
        """Give the stream up."""


class WorkerChannel:
    """Finds the worker of a spec, and finds it again when it was restarted.

    Raises (from every method): `RunError` when the worker cannot be had or broke the rules.
    """

    def __init__(self, spec: WorkerSpec, owner: Owner | None = None) -> None:
        self.spec, self.owner = spec, owner
        self._key = spec.digest() + (f"-{owner.pid}" if owner else "")
        self._broken_count = self._retry_count = self._deadline_count = 0
        self.slowest = 0.0  # seconds that a call was seen without progress before some came

    def endpoints(self) -> Endpoints:
        """Return the worker's endpoints, connecting first when needed."""
        while True:
            if (found := _open.get(self._key)) is not None:
                if found.connection.is_alive():
                    return found
                # gRPC would connect to the next process at the same socket, which nobody has shaken hands with.
                del _open[self._key]
                found.close()
            connection = ensure_worker(self.spec, self.owner)
            try:
                _open[self._key] = connect(connection)
            except grpc.RpcError as error:
                self._count_broken(error)
                recover_worker(connection, self.owner)

    @property
    def width(self) -> int:
        """How many endpoints share the buckets."""
        return len(self.endpoints().stubs)

    def open(self, number: int, method: Callable[[Any], Any], opening: pb.Opening, request: type[Any]) -> "AnyStream":
        """Open a stream at the endpoint of a partition or bucket, and send the opening.

        Args:
            number: Of the partition or bucket.
            method: Names the method of a stub.
            opening: What the stream is about.
            request: Type of the method's requests.
        """
        return Stream.open(self, number, method, opening, request)

    def close(self) -> None:
        """Close the connections of this process to the worker."""
        if (found := _open.pop(self._key, None)) is not None:
            found.close()

    def progressed(self) -> None:
        """Take note that a call was answered: earlier failures count no more."""
        self._broken_count = self._retry_count = self._deadline_count = 0

    def recover(self, endpoints: Endpoints, cause: BaseException) -> Ending | None:
        """Wait until another process of the worker serves; return how the one before ended, if that is known."""
        ending = find_ending(endpoints.connection)
        self._count_broken(cause, is_excused=ending is not None and ending.is_excused)
        # A stream may notice late what another one has already seen to.
        if _open.get(self._key) is endpoints:
            del _open[self._key]
        endpoints.close()
        following = recover_worker(endpoints.connection, self.owner)
        if ending is not None:
            _endings[endpoints.connection.pid] = ending.told(self.spec.name, endpoints.connection.pid, following.pid)
        return ending

    def learn(self, quarantine: Quarantine, suspect: Suspect | None) -> None:
        """Take note in `quarantine` of what a broken stream shows about a message of its call."""
        if suspect is None:
            return
        if quarantine.is_beyond(suspect):
            doing = suspect.note or "read or wrote states"
            reason = f"no answer within {suspect.text} s" if suspect.cause is Cause.HUNG else suspect.text
            raise RunError.of("W415", WORKER, worker=self.spec.name, doing=doing, reason=reason)
        try:
            is_certain = quarantine.learn(suspect)
        except ValueError as error:
            raise self.broke_rules(str(error)) from error
        if is_certain:
            self.progressed()
        if is_certain and suspect.cause is Cause.KILLED:
            excuse_endings(self.endpoints().connection, 2)

    @property
    def seconds(self) -> str:
        """The deadline of a call, for people."""
        return f"{self.spec.deadline_ms / 1000:g}"

    def seconds_for(self, quarantine: Quarantine) -> float:
        """Return how long a message of a call may take."""
        return quarantine.seconds(self.spec.deadline_ms / 1000, self.slowest)

    def kill_hung(self, endpoints: Endpoints, stage: str, seconds: float, *, is_certain: bool) -> None:
        """Kill the worker that missed a deadline; the second time in a row is an error without a suspect."""
        self._deadline_count += not is_certain
        kill_worker(endpoints.connection, f"it gave no answer within {seconds:g} s", is_excused=is_certain)
        if self._deadline_count >= DEADLINE_LIMIT:
            raise RunError.of("W411", WORKER, worker=self.spec.name, seconds=self.seconds, stage=stage)

    def failed(self, failure: pb.Failure) -> None:
        """Raise what the worker reported, unless trying again may help."""
        self._retry_count += 1
        if not failure.retriable or self._retry_count > RETRY_LIMIT:
            raise remote_error(self.spec.name, failure)

    def broke_rules(self, reason: str) -> RunError:
        """Return the error of a worker that does not follow the protocol."""
        return RunError.of("W410", WORKER, worker=self.spec.name, reason=reason)

    @contextlib.contextmanager
    def held_to_rules(self) -> Iterator[None]:
        """Give the worker's name to what an audit finds.

        Raises:
            RunError: W410, it broke a rule, or sent a damaged frame.
        """
        try:
            yield
        except RuleError as error:
            raise self.broke_rules(str(error)) from error
        except DamageError as error:
            reason = f"a frame is damaged; {error}"
            raise self.broke_rules(reason) from error

    def _count_broken(self, cause: BaseException, *, is_excused: bool = False) -> None:
        self._broken_count += not is_excused
        details = cause.details() if isinstance(cause, grpc.Call) else cause
        if isinstance(cause, grpc.Call) and cause.code() not in BROKEN_CODES:
            msg = f"{cause.code().name}: {details}"
            if NO_MEMORY.search(msg.encode("utf-8", "replace")):
                raise RunError.of("W417", WORKER, reason=msg) from cause
            raise self.broke_rules(msg) from cause
        if self._broken_count > BROKEN_LIMIT:
            msg = f"its streams broke {self._broken_count} times in a row; last: {details}"
            raise self.broke_rules(msg) from cause


def take_endings() -> dict[int, str]:
    """Return which processes of workers have ended by themselves since the last call, by process id, in words."""
    found = dict(_endings)
    _endings.clear()
    return found


def close_all() -> None:
    """Close all connections of this process."""
    while _open:
        _open.popitem()[1].close()


@dataclass
class Stream:
    """One open call, whichever its kind: a queue in, replies out, and a deadline."""

    channel: WorkerChannel
    endpoints: Endpoints
    stage: str
    requests: "SimpleQueue[Any]" = field(default_factory=SimpleQueue)
    call: Any = None
    flight: FlightFile | None = None
    deadline: Deadline = field(init=False)
    outputs: int = 0  # of the call that is not done
    span: trace.Span | None = None
    _error: str = ""
    _stalled: Mark = Mark()

    def __post_init__(self) -> None:
        with contextlib.suppress(OSError):  # the worker is gone, as opening the stream will show
            self.flight = FlightFile(self.endpoints.connection.directory)
        self.deadline = Deadline(self.channel.spec.deadline_ms / 1000, self._give_up, self._look)

    def _look(self) -> tuple[object, InFlight]:
        return self.flight.look() if self.flight else (None, InFlight.NONE)

    def _give_up(self) -> None:
        if self.flight:
            self._stalled = self.flight.read()
        self.call.cancel()

    @classmethod
    def open(
        cls, channel: WorkerChannel, number: int, method: Callable[[Any], Any], opening: pb.Opening, request: type[Any]
    ) -> "Stream":
        """Open a stream at the endpoint of a partition or bucket, and send the opening."""
        endpoints = channel.endpoints()
        check_capabilities(channel.spec, opening.stage, endpoints.init.capabilities)
        stream = cls(channel, endpoints, opening.stage.id, span=trace.stage_span(opening, channel.spec.name))
        metadata = [(trace.HEADER, stream.span.header)] if stream.span else None
        stream.call = method(endpoints.stub(number))(iter(stream.requests.get, None), metadata=metadata)
        noted = pb.Opening(in_flight=str(stream.flight.path) if stream.flight else "")
        noted.MergeFrom(opening)
        stream.send(request(opening=noted))
        return stream

    def arm(self, quarantine: Quarantine) -> None:
        """Begin to wait for the answer of a call, as long as is right for it."""
        self.deadline.seconds = self.channel.seconds_for(quarantine)
        self.deadline.arm()

    def rest(self) -> None:
        """Wait for no answer for a while."""
        self.deadline.rest()

    def resume(self) -> None:
        """Wait for an answer again."""
        self.deadline.arm()

    def send(self, request: Any) -> None:
        """Hand a request to the sending thread."""
        self.requests.put(request)

    def receive(self) -> Any:
        """Return the next reply.

        Raises:
            Broken: There is none; the stream is closed and the worker serves again.
        """
        try:
            reply = next(self.call)
        except StopIteration as error:
            self.close()
            msg = "it ended a stream that was not finished"
            raise self.channel.broke_rules(msg) from error
        except grpc.RpcError as error:
            self._error = "the worker gave no answer"
            try:
                suspect = self._find_suspect(error)
            finally:
                self.close()
            raise Broken(suspect) from error
        if reply.HasField("failure"):
            self._error = reply.failure.code
            self.close()
            self.channel.failed(reply.failure)
            raise Broken
        kind = reply.WhichOneof("kind")
        self.outputs = self.outputs + (kind == "output") if kind != "done" else 0
        return reply

    def _find_suspect(self, error: grpc.RpcError) -> Suspect | None:
        """Wait until the worker serves again; return the message of this stream that is the suspect."""
        self.deadline.close()
        self.call.cancel()
        stalled = self._stalled
        seconds = self.deadline.seconds
        if self.deadline.has_passed and self.outputs and not stalled.message:
            msg = f'stage "{self.stage}", field done: missing for {seconds:g} s after {self.outputs} outputs'
            raise self.channel.broke_rules(msg) from error
        if self.deadline.has_passed:
            self.channel.kill_hung(self.endpoints, self.stage, seconds, is_certain=bool(stalled.message))
        ending = self.channel.recover(self.endpoints, error)
        if self.flight is None or (self.deadline.has_passed and self.flight.read() != stalled):
            return None
        note = self.flight.note()
        if stalled.message and (ending is None or ending.killed_for):  # else it ended before it could be killed
            return Suspect(stalled.call, stalled.message - 1, Cause.HUNG, f"{seconds:g}", note=note)
        suspect = ending.suspect(self.flight.path.name) if ending else None
        return suspect and replace(suspect, note=note)

    def finish(self) -> None:
        """Close this side and wait for the other.

        Raises:
            RunError: W410, the worker had something left to say.
        """
        self.requests.put(None)
        self.deadline.arm()
        late = None
        with contextlib.suppress(grpc.RpcError):  # all is answered; how the worker says good-bye does not matter
            late = next(self.call, None)
        self.close()
        if late is not None:
            msg = f"{late.WhichOneof('kind') or 'an empty reply'} came after the last call was done"
            raise self.channel.broke_rules(msg)

    def close(self) -> None:
        """Give the stream up, in whatever state it is."""
        self.channel.slowest = max(self.channel.slowest, self.deadline.slowest)
        self.deadline.close()
        self.requests.put(None)
        self.call.cancel()
        if self.flight:
            self.flight.close()
        if self.span:
            self.span.end(self._error)
            self.span = None
