"""How a worker ends."""

import signal
import time

import grpc

from conformance.application import COUNT, FIRST, WORDS
from conformance.check import Context, check
from conformance.poison import in_flight_file, noted
from conformance.process import CALL_S, alive_in_session, wait_until
from conformance.session import ProcessStream, process, source_frame
from wallaroo.worker._proto import worker_pb2 as pb

STOP_S = 5
SLEEP_S = 1.5  # of the message `sleep`


@check("end: SIGTERM ends the worker and its processes within 5 s")
def sigterm(context: Context) -> None:
    with context.start_process() as worker:
        begin = time.monotonic()
        worker.process.send_signal(signal.SIGTERM)
        worker.end(STOP_S)
        rest = STOP_S - (time.monotonic() - begin)
        wait_until(lambda: not alive_in_session(worker.process.pid), "the worker's processes to end", max(rest, 0.1))


@check("end: SIGTERM with a stream open")
def sigterm_in_call(context: Context) -> None:
    with context.start_process() as worker:
        stream = ProcessStream(worker, FIRST)
        stream.send(data=pb.Data(index=0, frames=source_frame(WORDS, [b"a"])))
        stream.answer(0)
        worker.process.send_signal(signal.SIGTERM)
        worker.end(STOP_S)
        stream.close()
        stream.replies.cancel()


@check("end: SIGKILL leaves no process")
def sigkill(context: Context) -> None:
    with context.start_process() as worker:
        worker.process.kill()
        worker.process.wait(timeout=STOP_S)
        wait_until(lambda: not alive_in_session(worker.process.pid), "the worker's processes to end", STOP_S)


@check("end: a worker that was killed breaks the stream, which a client repeats")
def broken_stream(context: Context) -> None:
    with context.start_process() as worker:
        stream = ProcessStream(worker, FIRST)
        stream.send(data=pb.Data(index=0, frames=source_frame(WORDS, [b"a"])))
        stream.answer(0)
        worker.process.kill()
        try:
            stream.receive()
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED), error
        except EOFError:
            pass
        else:
            msg = "the stream went on after the worker's death"
            raise AssertionError(msg)
        stream.close()


def elapsed_at(context: Context, first: int, second: int, alone: bool = False) -> float:
    """Let a message sleep at one endpoint and run one at another; returns how much of the sleep passed meanwhile."""
    with in_flight_file() as path, ProcessStream(context.worker, FIRST, first, in_flight=str(path)) as sleeping:
        begin = time.monotonic()
        sleeping.send(data=pb.Data(index=0, frames=source_frame(WORDS, [b"sleep"]), alone=alone))
        wait_until(lambda: noted(path)[1] == 1, "the message that sleeps to be in flight", CALL_S)
        (answer,) = process(context.worker, FIRST, [source_frame(WORDS, [b"a"])], second)
        assert answer.keyed(COUNT) == [(0, b"a")]
        part = (time.monotonic() - begin) / SLEEP_S
        assert sleeping.answer(0).keyed(COUNT) == [(0, b"sleep")]
    return part


@check("endpoints: there are as many as processes, and calls at two of them run at once")
def side_by_side(context: Context) -> None:
    worker = context.worker
    processes = {worker.init(target).process_id for target in worker.endpoints}
    assert len(set(worker.endpoints)) == len(worker.endpoints)
    assert elapsed_at(context, 0, 1) < 0.9, f"a call waited for one at another endpoint; processes {processes}"


@check("alone: no other call of the process runs a message meanwhile")
def alone(context: Context) -> None:
    assert elapsed_at(context, 0, len(context.worker.endpoints), alone=True) >= 1
