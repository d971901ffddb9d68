"""What workers answer the gateway (SplitReply, GenerateReply) is checked where it is taken: a wrong answer is W410."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.rpc import WORKER_SERVICE, add_service
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.worker.discovery import ServingWorker
from wallaroo_runtime.worker.endpoint import connect
from wallaroo_runtime.worker.idempotent_call import WorkerMaker, WorkerSplitter
from wallaroo_runtime.worker.launch import SOCKET
from wallaroo_runtime.worker.spec import WorkerSpec

BROKE = 'W410 worker "0/sources/0": the protocol is broken; '
DRAWN = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Answering:
    """A worker that answers as a test says."""

    hello = pb.InitReply(capabilities=["split_frames", "generate"])
    split = pb.SplitReply()
    generated = pb.GenerateReply()

    def Init(self, request: pb.InitRequest, context: Any) -> pb.InitReply:  # noqa: N802
        return self.hello

    def SplitFrames(self, request: pb.SplitRequest, context: Any) -> pb.SplitReply:  # noqa: N802
        return self.split

    def Generate(self, request: pb.GenerateRequest, context: Any) -> pb.GenerateReply:  # noqa: N802
        return self.generated


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[tuple[Answering, str]]:
    """Give a worker in this process, and its target."""
    service, server = Answering(), grpc.server(ThreadPoolExecutor(1))
    add_service(WORKER_SERVICE, service, server)
    target = f"unix:{tmp_path}/s"
    server.add_insecure_port(target)
    server.start()
    yield service, target
    server.stop(None).wait()


@DRAWN
@given(some.binary(max_size=30), some.lists(some.integers(0, 12), max_size=5), some.integers(0, 50))
def test_lengths_are_those_of_messages_that_are_there(
    worker: tuple[Answering, str], data: bytes, lengths: list[int], wanted: int
) -> None:
    service, target = worker
    service.split = pb.SplitReply(lengths=lengths, wanted_bytes=wanted)
    splitter = WorkerSplitter(target, "0/sources/0", 1000)
    try:
        if 0 not in lengths and sum(lengths) <= len(data):
            assert splitter.split(data) == (lengths, wanted)
            return
        with pytest.raises(RunError) as caught:
            splitter.split(data)
        assert str(caught.value).startswith(f"{BROKE}SplitReply, field lengths: {lengths} for {len(data)} bytes\n")
    finally:
        splitter.close()


@DRAWN
@given(
    some.lists(some.binary(max_size=6), max_size=6),
    some.sampled_from([0, 1, 2, 15, 16, 17, 255, 256, 4_000_000_000]),
    some.integers(1, 5),
    some.integers(1, 12),
)
def test_generated_messages_are_what_was_asked_for(
    worker: tuple[Answering, str], values: list[bytes], encoding: int, max_count: int, max_bytes: int
) -> None:
    service, target = worker
    service.generated = pb.GenerateReply(values=values, encoding=encoding)
    size = sum(map(len, values[:-1]))
    if len(values) > max_count:
        wrong = f"values: {len(values)} messages; at most {max_count} were asked for"
    elif size >= max_bytes:
        wrong = f"values: {size} bytes before the last message; {max_bytes} were asked for"
    elif values and encoding not in (0, 16, 17, 255):
        wrong = f"encoding: {encoding}; expected 0 or 16 to 255"
    else:
        assert WorkerMaker(target, "0/sources/0").make(None, 0, max_count, max_bytes) == (values, encoding, False, "")
        return
    with pytest.raises(RunError) as caught:
        WorkerMaker(target, "0/sources/0").make(None, 0, max_count, max_bytes)
    assert str(caught.value).startswith(f"{BROKE}GenerateReply, field {wrong}\n")


def test_failures_are_passed_on(worker: tuple[Answering, str]) -> None:
    service, target = worker
    failure = pb.Failure(code="C505", message="no header", fix="send one")
    service.split, service.generated = pb.SplitReply(failure=failure), pb.GenerateReply(values=[b"a"], failure=failure)
    splitter = WorkerSplitter(target, "0/sources/0", 1000)
    with pytest.raises(RunError, match="C505 no header"):
        splitter.split(b"a")
    splitter.close()
    assert WorkerMaker(target, "0/sources/0").make(None, 0, 1, 1) == ([b"a"], 0, False, "C505 no header")


def test_a_worker_without_the_capability_is_told(worker: tuple[Answering, str]) -> None:
    service, target = worker
    service.hello = pb.InitReply(capabilities=["generate"])
    splitter = WorkerSplitter(target, "0/sources/0", 1000)
    with pytest.raises(RunError) as caught:
        splitter.split(b"a")
    splitter.close()
    assert str(caught.value).startswith(
        'W416 worker "0/sources/0" lacks the capability "split_frames", which a source that its decoder cuts needs\n'
    )
    assert WorkerMaker(target, "0/sources/0").make(None, 0, 1, 1) == ([], 0, False, "")
    service.hello = pb.InitReply(capabilities=["split_frames"])
    with pytest.raises(RunError, match='lacks the capability "generate", which a generator needs'):
        WorkerMaker(target, "0/sources/0").make(None, 0, 1, 1)


@pytest.mark.parametrize(
    ("versions", "interface_hash", "code", "text"),
    [
        ((0, 0), "", "C513", "C513 mine"),
        ((1, 1), "", "C513", "C513 mine"),
        ((1, 1), "sha256:1", "C513", "C513 mine"),
        ((0, 0), "", "W416", "W416 mine"),
        ((2, 3), "sha256:1", "W416", 'W416 worker "main" speaks protocol 2 to 3; the runtime speaks 1'),
        ((1, 1), "sha256:2", "W403", 'W403 worker "main" hosts another application; its interface hash is sha256:2'),
    ],
)
def test_a_failure_may_be_all_that_a_worker_answers(
    worker: tuple[Answering, str], versions: tuple[int, int], interface_hash: str, code: str, text: str
) -> None:
    service, target = worker
    failure = pb.Failure(code=code, message="mine")
    service.hello = pb.InitReply(
        protocol_min=versions[0], protocol_max=versions[1], interface_hash=interface_hash, failure=failure
    )
    spec = WorkerSpec("Words", "main", ("none",), "/", interface_hash="sha256:1")
    directory = Path(target.removeprefix("unix:")).parent
    (directory / SOCKET).symlink_to(directory / "s")
    with pytest.raises(RunError) as caught:
        connect(ServingWorker(spec, directory, 1, 1))
    assert str(caught.value).startswith(text)


def test_a_worker_that_refuses_the_handshake_is_told(worker: tuple[Answering, str]) -> None:
    service, target = worker
    service.hello = pb.InitReply(failure=pb.Failure(code="W416", message="speaks protocol 9", fix="update it"))
    with pytest.raises(RunError, match="W416 speaks protocol 9"):
        WorkerMaker(target, "0/sources/0").make(None, 0, 1, 1)
