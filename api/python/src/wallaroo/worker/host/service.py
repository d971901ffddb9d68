"""The gRPC service of a worker: its methods, which `CallRunner` runs."""

import os
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.emit.program import LoadedProgram
from wallaroo.message.handshake import CAPABILITIES, PROTOCOLS, common_version, shown_versions
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host import trace
from wallaroo.worker.host.call import CallRunner

T = TypeVar("T")


class WorkerService:
    """Serves the worker protocol for one process of the worker.

    Args:
        program: The loaded program.
        endpoints: Endpoints of all processes of the worker, including this process.
        calls: Executes the calls, with the user's code.
    """

    def __init__(self, program: LoadedProgram, endpoints: list[str], calls: CallRunner) -> None:
        self._program, self._endpoints, self._calls = program, endpoints, calls

    def Init(self, request: pb.InitRequest, context: Any) -> pb.InitReply:
        """Describe this worker to the runtime. Fail if the worker does not fit the runtime, or has another topology."""
        worker = self._program.document["workers"][0]
        reply = pb.InitReply(
            protocol_min=PROTOCOLS[0],
            protocol_max=PROTOCOLS[1],
            capabilities=CAPABILITIES,
            language="python",
            interface_hash=worker["interface_hash"],
            endpoints=self._endpoints,
            process_id=os.getpid(),
        )
        finding = _refusal(request, reply, worker["name"])
        if finding is not None:
            reply.failure.CopyFrom(pb.Failure(code=finding.code, message=finding.message, fix=finding.fix))
        return reply

    def Process(self, request_iterator: Iterator[pb.Request], context: Any) -> Iterator[pb.Reply]:
        """Run a stage without state."""
        return self._traced("Process", context, self._calls.process(request_iterator))

    def ProcessState(self, request_iterator: Iterator[pb.Request], context: Any) -> Iterator[pb.Reply]:
        """Run a stage that begins with state."""
        return self._traced("ProcessState", context, self._calls.process_state(request_iterator))

    def _traced(self, method: str, context: Any, replies: Generator[T, None, None]) -> Iterator[T]:
        """Return the replies of a call. If the client has sent the ids of a trace, record the call there as a span."""
        span = trace.call_span(self._program.application.name, method, context.invocation_metadata())
        return replies if span is None else trace.within(span, replies)

    def SplitFrames(self, request: pb.SplitRequest, context: Any) -> pb.SplitReply:
        """Cut bytes of a TCP source: return the lengths of their messages."""
        return self._calls.split(request)

    def Generate(self, request: pb.GenerateRequest, context: Any) -> pb.GenerateReply:
        """Make the next messages of a generator source."""
        return self._calls.generate(request)

    def ShowState(self, request: pb.ShowStateRequest, context: Any) -> pb.ShowStateReply:
        """Return the states of a state log in readable form."""
        return self._calls.show_state(request)


def _refusal(request: pb.InitRequest, reply: pb.InitReply, worker: str) -> Diagnostic | None:
    asked = (request.protocol_min, request.protocol_max)
    if not common_version(PROTOCOLS, asked):
        lack = f"speaks protocol {shown_versions(PROTOCOLS)}; the runtime speaks {shown_versions(asked)}"
        return Diagnostic.of("W416", worker=worker, lack=lack)
    if request.interface_hash and request.interface_hash != reply.interface_hash:
        reason = f"its interface hash is {reply.interface_hash}; the topology has {request.interface_hash}"
        return Diagnostic.of("W403", worker=worker, reason=reason)
    return None
