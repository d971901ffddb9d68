"""The Python worker in this process, with a fault; so the driver tries a fault in milliseconds."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.application import ARGS
from conformance.fault import FAULTS, Fault
from conformance.process import Client
from wallaroo.emit.program import LoadedProgram, load
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.call import CallRunner
from wallaroo.worker.host.server import WorkerServer
from wallaroo.worker.host.service import WorkerService

HERE = Path(__file__).resolve().parent
CACHE_BYTES = 64 << 20
ONE_PROCESS = "one-process"  # a fault of the worker as a whole: both endpoints are of one process


class WrongService:
    """Passes calls on to the right service, through a fault."""

    def __init__(self, right: WorkerService, name: str) -> None:
        self._right, self._fault = right, FAULTS.get(name, Fault)

    def Init(self, request: pb.InitRequest, context: Any) -> pb.InitReply:
        fault = self._fault()
        fault.init_request(request)
        reply = self._right.Init(request, context)
        fault.init(reply)
        return reply

    def Process(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        return self._stream(self._right.Process, requests, context, has_state=False)

    def ProcessState(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        return self._stream(self._right.ProcessState, requests, context, has_state=True)

    def SplitFrames(self, request: pb.SplitRequest, context: Any) -> pb.SplitReply:
        reply = self._right.SplitFrames(request, context)
        self._fault().split(reply)
        return reply

    def Generate(self, request: pb.GenerateRequest, context: Any) -> pb.GenerateReply:
        fault = self._fault()
        fault.generate_request(request)
        reply = self._right.Generate(request, context)
        fault.generate(reply)
        return reply

    def ShowState(self, request: pb.ShowStateRequest, context: Any) -> pb.ShowStateReply:
        reply = self._right.ShowState(request, context)
        self._fault().shown(reply)
        return reply

    def _stream(
        self, method: Callable[..., Iterator[Any]], requests: Iterator[Any], context: Any, *, has_state: bool
    ) -> Iterator[Any]:
        fault = self._fault()
        fault.has_state = has_state

        def changed() -> Iterator[Any]:
            for request in requests:
                fault.request(request)
                yield request

        for reply in method(changed(), context):
            yield from fault.reply(reply)


class LocalWorker(Client):
    """Serves a program of this process at two endpoints, each as if it were a process of its own.

    Args:
        name: The fault.
        args: Arguments of the application; None: those of `Conformance`.
        variables: What the client adds to the worker's environment.
    """

    programs: dict[tuple[str, ...], LoadedProgram] = {}

    def __init__(self, name: str, args: Sequence[str] | None, variables: Mapping[str, str]) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="wc-", dir="/tmp"))
        sockets = [self.directory / "worker.sock", self.directory / "worker-1.sock"]
        targets = [f"unix:{socket}" for socket in sockets]
        cache_bytes = int(variables.get("WALLAROO_STATE_CACHE_BYTES", CACHE_BYTES)) // 2
        checks_persist = variables.get("WALLAROO_CHECK_PERSIST") == "1"
        program = self._program(args)
        calls = [CallRunner(program, cache_bytes, checks_persist=checks_persist) for _ in targets]
        services = [WorkerService(program, targets, each) for each in calls]
        if name == ONE_PROCESS:
            services = services[:1] * 2
        self.servers = [WorkerServer(WrongService(each, name), at) for each, at in zip(services, sockets, strict=True)]
        for server in self.servers:
            server.start()
            server.show()
        self.target = targets[0]

    def close(self) -> None:
        """End the servers."""
        super().close()
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _program(self, args: Sequence[str] | None) -> LoadedProgram:
        if not self.programs:
            self.programs[tuple(ARGS)] = load(str(HERE / "app.py"), ARGS)
        key = tuple(ARGS if args is None else args)
        if key not in self.programs:
            self.programs[key] = load("streams", args or ())
        return self.programs[key]
