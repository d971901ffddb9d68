"""Messages that end a worker: the in-flight file names them, and skipped ones become dead letters."""

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc

from conformance.application import COUNT, FIRST, SECOND, WORDS, WORDS_OUT, bucket_of
from conformance.check import Context, check
from conformance.process import CALL_S, Worker, wait_until
from conformance.session import BucketStore, ProcessStream, StateStream, keyed, source_frame
from wallaroo.worker._proto import worker_pb2 as pb

SOURCE, STATE = "0/sources/0", "0/steps/2"
END_S = 5


@contextmanager
def in_flight_file() -> Iterator[Path]:
    """Give a file of 256 zero bytes."""
    with TemporaryDirectory(prefix="wc-") as folder:
        path = Path(folder) / "in-flight"
        path.write_bytes(bytes(256))
        yield path


def noted(path: Path) -> tuple[int, ...]:
    """Return index, 1 + ordinal, process id and the reserved number."""
    return struct.unpack("<4Q", path.read_bytes()[:32])


def skips(*ordinals: int) -> list[pb.Skip]:
    return [pb.Skip(ordinal=ordinal, code="C508", reason=f"reason {ordinal}") for ordinal in ordinals]


@check("in flight: the file reports call, process, and that no message is in flight any more")
def at_rest(context: Context) -> None:
    worker = context.worker
    with in_flight_file() as path, ProcessStream(worker, FIRST, in_flight=str(path)) as stream:
        for index in range(2):
            stream.send(data=pb.Data(index=index, frames=source_frame(WORDS, [b"a", b"b"])))
            stream.answer(index)
        process = worker.init(worker.endpoint(0)).process_id
        assert noted(path) == (1, 0, process, 0), noted(path)


@check("in flight: the file names the message that ended the worker")
def ended(context: Context) -> None:
    with context.start_process() as worker, in_flight_file() as path:
        process = worker.init(worker.endpoint(0)).process_id
        stream = ProcessStream(worker, FIRST, in_flight=str(path))
        stream.send(data=pb.Data(index=0, frames=source_frame(WORDS, [b"a"] * 5)))
        stream.answer(0)
        data = source_frame(WORDS, [b"a", b"skip", b"b"]) + source_frame(WORDS, [b"c", b"exit", b"d"])
        stream.send(data=pb.Data(index=1, frames=data))
        worker.end(END_S)
        stream.close()
        stream.replies.cancel()
        assert noted(path) == (1, 1 + 4, process, 0), noted(path)


@check("in flight: a worker whose other process ended reports which one it was")
def ended_elsewhere(context: Context) -> None:
    with context.start_process() as worker, in_flight_file() as path:
        number = len(worker.endpoints) - 1
        process = worker.init(worker.endpoint(number)).process_id
        stream = ProcessStream(worker, FIRST, number, in_flight=str(path))
        stream.send(data=pb.Data(index=0, frames=source_frame(WORDS, [b"exit"])))
        worker.end(END_S)
        stream.close()
        stream.replies.cancel()
        assert noted(path) == (0, 1, process, 0), noted(path)
        told = [json.loads(file.read_bytes()) for file in worker.directory.rglob("ended.json")]
        assert told == [{"process_id": process, "status": 3}] * bool(number), told


@check("in flight: a file that cannot be mapped is refused")
def no_file(context: Context) -> None:
    stream = ProcessStream(context.worker, FIRST, in_flight="/nowhere/in-flight")
    reply = next(stream.replies)
    assert reply.failure.code == "W410", reply
    stream.close()


@check("skips: messages that are not run are dead letters of their source")
def skipped_by_source(context: Context) -> None:
    data = source_frame(WORDS, [b"a", b"raise"], 10) + source_frame(WORDS, [b"b", b"raise", b"c"], 20)
    with ProcessStream(context.worker, FIRST) as stream:
        stream.send(data=pb.Data(index=0, frames=data, skips=skips(1, 3), alone=True))
        answer = stream.answer(0)
        stream.send(data=pb.Data(index=1, frames=source_frame(WORDS, [b"a", b"b"])))
        assert not stream.answer(1).letters, "skips are of one call"
    assert answer.keyed(COUNT) == [(10, b"a"), (20, b"b"), (22, b"c")]
    assert answer.codes() == [("C508", SOURCE, 11), ("C508", SOURCE, 21)], answer.codes()
    assert [letter.error for letter in answer.letters] == ["reason 1", "reason 3"]
    assert [(letter.input, letter.port, letter.traceback) for letter in answer.letters] == [(b"raise", WORDS, "")] * 2
    assert {each.path: each.dead_letters for each in answer.done.counts}[SOURCE] == 2


@check("skips: messages that are not run leave their key's state alone")
def skipped_by_state(context: Context) -> None:
    names = [name for name in (f"skipped{i}" for i in range(1000)) if bucket_of(name.encode()) == 3][:2]
    first, second = names
    texts = [f"{first}:add", f"{first}:add", f"{second}:add", f"{first}:add"]
    (frames,) = keyed(context.worker, WORDS, texts).values()
    store = BucketStore(3)
    with StateStream(context.worker, SECOND, 3) as stream:
        version = pb.Version()
        for number, frame in enumerate(frames):
            is_first, more = not number, number < len(frames) - 1
            stream.send(
                bucket=pb.Bucket(
                    bucket=3,
                    version=version,
                    frames=frame,
                    more=more,
                    skips=skips(1, 2) if is_first else [],
                    alone=True,
                )
            )
        answer = stream.answer(store)
    assert [text.partition(";")[0] for _, text in answer.texts(WORDS_OUT)] == [f"add:{first}=1", f"add:{first}=2"]
    assert [(letter.code, letter.path, letter.key) for letter in answer.letters] == [
        ("C508", STATE, first.encode()),
        ("C508", STATE, second.encode()),
    ]
    assert answer.done.keys == 1, "a skipped message gave its key a state"


def is_killed_at_second_call(worker: Worker) -> bool:
    """Make two calls and say whether the second one killed the process."""
    stream = ProcessStream(worker, FIRST)
    stream.send(data=pb.Data(index=0, frames=source_frame(WORDS, [b"a"])))
    stream.answer(0)  # what a process that is killed has answered may get lost with it
    stream.send(data=pb.Data(index=1, frames=source_frame(WORDS, [b"a"])))
    try:
        stream.answer(1)
    except grpc.RpcError:
        wait_until(lambda: worker.process.poll() is not None, "the worker's end", CALL_S)
        return True
    finally:
        stream.close()
    return False


@check("fault: a kill point that is reached ends the process once")
def kill_point(context: Context) -> None:
    killed = []
    with TemporaryDirectory(prefix="wc-") as folder:
        variables = {"WALLAROO_FAULT": "worker.before_compute:2", "WALLAROO_FAULT_DIR": folder}
        for _ in range(2):
            with context.start_process(variables) as worker:
                killed.append(is_killed_at_second_call(worker))
        assert [path.name for path in Path(folder).iterdir()] == ["worker.before_compute:2"]
    assert killed == [True, False], killed
