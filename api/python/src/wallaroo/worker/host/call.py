"""Runs calls of the worker protocol. They come by gRPC, or from the memory engine in the same process."""

import pickle
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from wallaroo.component.application import Source
from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, shown
from wallaroo.diagnostic.fault import reach
from wallaroo.emit.program import LoadedProgram
from wallaroo.message.frame import FRAMED, FrameError
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.bucket_requests import BucketProtocolError, BucketRequests
from wallaroo.worker.bucket.calendar import HEAD, WINDOWED
from wallaroo.worker.bucket.call_run import CallRun
from wallaroo.worker.bucket.cell import TIMED, read_timed
from wallaroo.worker.bucket.state import MAX_STATE_BYTES, BucketKey, BucketState, Version
from wallaroo.worker.bucket.state_cache import StateCache
from wallaroo.worker.stage.flight import InFlight
from wallaroo.worker.stage.generate import generate
from wallaroo.worker.stage.stage import Stage, not_hosted
from wallaroo.worker.value.letter_box import LetterBox
from wallaroo.worker.value.show import shown_json
from wallaroo.worker.value.unpicklable import REMEDY
from wallaroo.worker.value.value import NotSerializableError, StateReadError, ValueCodec
from wallaroo.worker.value.wire import HeaderError, WireReader

MAX_STAGES = 64
SHOW_WAIT_S = 3.0  # longest wait for the end of running user code
EMPTY = Version(0, 0)


class CallRunner:
    """Runs the calls that one process of the worker gets.

    User code runs under one lock: as in Wallaroo, it never runs in two threads of a process at once.

    Args:
        program: The loaded program.
        cache_bytes: Limit of the state cache of this process, in bytes.
        checks_persist: Whether a change of state without `persist` is a failure. The check is slow.
        max_state_bytes: Largest size of the state of one key, in bytes.
    """

    def __init__(
        self,
        program: LoadedProgram,
        cache_bytes: int,
        *,
        checks_persist: bool = False,
        max_state_bytes: int = MAX_STATE_BYTES,
    ) -> None:
        self._checks_persist, self._max_state_bytes = checks_persist, max_state_bytes
        self._program = program
        self._codec = ValueCodec(program.application.serializer)
        self._cache = StateCache(cache_bytes)
        self._stages: OrderedDict[bytes, Stage] = OrderedDict()
        self._user = threading.Lock()

    def process(self, requests: Iterator[pb.Request]) -> Generator[pb.Reply, None, None]:
        """Run calls of a stage without state. If an error ends the stream, the last reply is the failure."""
        return _ended(self._data_calls(requests))

    def process_state(self, requests: Iterator[pb.Request]) -> Generator[pb.Reply, None, None]:
        """Run calls of a stage that begins with state. If an error ends the stream, the last reply is the failure."""
        return _ended(self._bucket_calls(requests))

    def split(self, request: pb.SplitRequest) -> pb.SplitReply:
        """Cut bytes of a TCP source: return the lengths of their messages, which only the user's decoder can find."""
        try:
            reader = WireReader(self._source("SplitFrames", request.path), LetterBox(self._codec))
            with self._user, InFlight(""):
                lengths, wanted = reader.split(request.data, request.max_message_bytes)
        except Exception as err:
            return pb.SplitReply(failure=failure_of(err))
        return pb.SplitReply(lengths=lengths, wanted_bytes=wanted)

    def generate(self, request: pb.GenerateRequest) -> pb.GenerateReply:
        """Make the next messages of a generator. Any process can do this, because the request has the last message."""
        reply = pb.GenerateReply(encoding=self._codec.encoding)
        try:
            source = self._source("Generate", request.path)
            with self._user, InFlight(""):
                generate(source, self._codec, request, reply)
        except Exception as err:
            reply.failure.CopyFrom(failure_of(err))
        return reply

    def message_bytes(self, message: Any) -> tuple[int, bytes]:
        """Return the encoding and the bytes that a message has in frames between stages."""
        return self._codec.encoding, self._codec.dump(message)

    def message(self, encoding: int, data: bytes) -> Any:
        """Return the message that bytes of a frame contain. Payloads of a TCP source are returned as they are."""
        return data if encoding == FRAMED else self._codec.decode(encoding, [len(data)], data)[0]

    def state(self, encoding: int, data: bytes) -> Any:
        """Return the state that bytes of a state log contain. For a window, return its accumulators, oldest first."""
        if encoding == TIMED:
            _, encoding, data = read_timed(data)
        if encoding != WINDOWED:
            return self._codec.loader(encoding)(data)
        inner, _, panes = pickle.loads(data[HEAD.size :])
        load = self._codec.loader(inner)
        return [load(pane) for _, pane in sorted(panes)]

    def show_state(self, request: pb.ShowStateRequest) -> pb.ShowStateReply:
        """Return the states that a whole state log contains, in readable form."""
        reply = pb.ShowStateReply()
        try:
            with self._idle():
                self._stage(request.stage)
                log = self._empty()
                log.read(request.entries)
                log.end_log()
                shows = self._shows(request.stage)
                for port, key, value in log.values(self.state):
                    show = shows.get(port)
                    reply.states.add(port=port, key=key, json=shown_json(show(value) if show else value))
        except Exception as err:
            return pb.ShowStateReply(failure=failure_of(err))
        return reply

    def _shows(self, stage: pb.Stage) -> dict[int, Callable[[Any], Any] | None]:
        """Return the functions that make states readable, by port in the state log; None for a state shown as it is."""
        steps = {step.path: step for line in self._program.application.pipelines for step in line.steps}
        states = {node.state_port: steps[node.path].state for node in stage.nodes if node.path in steps}
        return {port: state.show for port, state in states.items() if state is not None}

    @contextmanager
    def _idle(self) -> Iterator[None]:
        """Keep user code from running while the context is open.

        Raises:
            DiagnosticError: W431 if user code runs for too long: a page in a browser must not wait for it.
        """
        if not self._user.acquire(timeout=SHOW_WAIT_S):
            worker = self._program.document["workers"][0]["name"]
            raise DiagnosticError([Diagnostic.of("W431", worker=worker, seconds=f"{SHOW_WAIT_S:g}")])
        try:
            yield
        finally:
            self._user.release()

    def _source(self, call: str, path: str) -> Source:
        """Return the source at a path. Fail if this source does not have the function that the call needs."""
        for node in self._program.application.nodes():
            wanted = isinstance(node, Source) and (node.generator if call == "Generate" else node.payload_length)
            if node.path == path and isinstance(node, Source) and wanted:
                return node
        raise DiagnosticError([not_hosted(call, path)])

    def _data_calls(self, requests: Iterator[pb.Request]) -> Iterator[pb.Reply]:
        opening = _opening(next(requests, None))
        with InFlight(opening.in_flight) as flight:
            for request in requests:
                yield from self._data(opening, request, flight)

    def _bucket_calls(self, requests: Iterator[pb.Request]) -> Iterator[pb.Reply]:
        opening = _opening(next(requests, None))
        with InFlight(opening.in_flight) as flight:
            calls = BucketRequests(requests)
            while (request := calls.first()) is not None:
                yield from self._bucket(opening, request, calls, flight)

    def _data(self, opening: pb.Opening, request: pb.Request, flight: InFlight) -> Iterator[pb.Reply]:
        if request.WhichOneof("kind") != "data":
            msg = f"a stream without state got {request.WhichOneof('kind')}"
            raise BucketProtocolError(msg)
        index = request.data.index
        reach("worker.before_compute")
        with self._user:
            stage = self._stage(opening.stage)
            with stage.call(index, flight, request.data.skips):
                outputs = stage.run(index, request.data.frames)
            done = pb.Done(index=index, counts=stage.counts())
            stage.clear()
        reach("worker.after_compute")
        for output in outputs:
            yield pb.Reply(output=output)
        yield pb.Reply(done=done)
        reach("worker.after_reply")

    def _bucket(
        self, opening: pb.Opening, first: pb.Bucket, requests: BucketRequests, flight: InFlight
    ) -> Iterator[pb.Reply]:
        part = requests.part(first)
        reach("worker.before_compute")
        key, version = _owner(opening, first)
        state = self._cache.take(key, version)
        if version == EMPTY:
            state = self._empty()
        elif state is None or first.careful:
            yield pb.Reply(need_state=pb.NeedState(index=first.index))
            state = self._read_log(first.index, requests)
        with self._user:
            stage = self._stage(opening.stage)
        run = CallRun(stage, first, state, checks_persist=self._checks_persist)
        while True:
            answer = self._run_part(run, first, part, flight)
            if answer is None:
                state = yield from self._committed(first, requests)
                run = CallRun(stage, first, state, before=run)
                answer = self._run_part(run, first, part, flight)
            if isinstance(answer, BucketResult):
                yield from self._end(opening, first, state, answer)
                return
            assert answer is not None, "a try after a rollback runs message by message"
            reach("worker.after_compute")
            for output in answer:
                yield pb.Reply(output=output)
            yield pb.Reply(released=pb.Released(index=first.index))
            reach("worker.after_reply")
            part = requests.part(requests.following(first.index))
            reach("worker.before_compute")

    def _run_part(
        self, run: CallRun, first: pb.Bucket, part: tuple[pb.Bucket, list[bytes]], flight: InFlight
    ) -> list[pb.Output] | BucketResult | None:
        with self._user, run.stage.call(first.index, flight, first.skips):
            return run.part(*part)

    def _committed(self, call: pb.Bucket, requests: BucketRequests) -> Generator[pb.Reply, None, BucketState]:
        """Request the committed states of the bucket again, because user code failed and spoilt the copy in memory."""
        if Version(call.version.counter, call.version.nonce) == EMPTY:
            return self._empty()
        yield pb.Reply(need_state=pb.NeedState(index=call.index, rollback=True))
        return self._read_log(call.index, requests)

    def _end(
        self, opening: pb.Opening, call: pb.Bucket, state: BucketState, result: BucketResult
    ) -> Iterator[pb.Reply]:
        """Send the results of a bucket call, and keep the bucket's states for the next call."""
        reach("worker.after_compute")
        for output in result.outputs:
            yield pb.Reply(output=output)
        for change in result.changes:
            yield pb.Reply(change=change)
        key, version = _owner(opening, call)
        self._cache.file(key, Version(version.counter + 1, result.done.nonce), state)
        yield pb.Reply(done=result.done)
        reach("worker.after_reply")

    def _empty(self) -> BucketState:
        return BucketState(self._codec, self._max_state_bytes)

    def _read_log(self, index: int, requests: BucketRequests) -> BucketState:
        state = self._empty()
        while True:
            log = requests.log(index)
            state.read(log.entries)
            if not log.more:
                state.end_log()
                return state

    def _stage(self, stage: pb.Stage) -> Stage:
        wire = stage.SerializeToString(deterministic=True)
        if wire not in self._stages:
            self._stages[wire] = Stage(self._program.application, stage)
            if len(self._stages) > MAX_STAGES:
                self._stages.popitem(last=False)
        return self._stages[wire]


def _ended(replies: Iterator[pb.Reply]) -> Generator[pb.Reply, None, None]:
    try:
        yield from replies
    except Exception as err:
        yield pb.Reply(failure=failure_of(err))


def failure_of(error: Exception) -> pb.Failure:
    """Convert an error that has ended a call to a `Failure` for the client. A retry of the call is useless."""
    trace = ""
    if isinstance(error, DiagnosticError):
        finding = error.diagnostics[0]
        trace = finding.traceback
    elif isinstance(error, FrameError):
        finding = Diagnostic.of("W410", worker="main", reason=f"a frame is damaged; {error}")
    elif isinstance(error, StateReadError):
        finding = Diagnostic.of("C507", key=shown(error.key), error=error)
    elif isinstance(error, NotSerializableError):
        fix = f"keep only what can be pickled in the state, {REMEDY}"
        finding = Diagnostic.of("C504", step="a snapshot", type=error.type_name, error=error, fix=fix)
    elif isinstance(error, HeaderError):
        finding = Diagnostic.of("C505", step="payload_length", error=error)
    elif isinstance(error, MemoryError):
        finding = Diagnostic.of("W417", reason="MemoryError outside of user code")
    elif isinstance(error, BucketProtocolError):
        finding = Diagnostic.of("I901", reason=error)
    else:
        finding = Diagnostic.of("I901", reason=f"{type(error).__name__}: {error}")
        trace = "".join(traceback.format_exception(error))
    message = finding.message.encode("utf-8", "backslashreplace").decode()
    return pb.Failure(code=finding.code, message=message, fix=finding.fix, retriable=False, traceback=trace)


def _opening(request: pb.Request | None) -> pb.Opening:
    if request is None or request.WhichOneof("kind") != "opening":
        msg = "a stream does not begin with its opening"
        raise BucketProtocolError(msg)
    return request.opening


def _owner(opening: pb.Opening, call: pb.Bucket) -> tuple[BucketKey, Version]:
    """Return the bucket, and the version of its states, that a call needs."""
    key = BucketKey(opening.application, opening.query, opening.stage.id, call.bucket)
    return key, Version(call.version.counter, call.version.nonce)
