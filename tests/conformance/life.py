"""How a worker ends."""

import signal
import time

import grpc

from conformance.application import FIRST, WORDS
from conformance.check import Context, check
from conformance.process import alive_in_session, wait_until
from conformance.session import ProcessStream, source_frame
from wallaroo.worker._proto import worker_pb2 as pb

STOP_S = 5


@check("end: SIGTERM ends the worker and its processes within 5 s")
def sigterm(context: Context) -> None:
    with context.start() as worker:
        begin = time.monotonic()
        worker.process.send_signal(signal.SIGTERM)
        worker.end(STOP_S)
        rest = STOP_S - (time.monotonic() - begin)
        wait_until(lambda: not alive_in_session(worker.process.pid), "the worker's processes to end", max(rest, 0.1))


@check("end: SIGTERM with a stream open")
def sigterm_in_call(context: Context) -> None:
    with context.start() as worker:
        stream = ProcessStream(worker, FIRST)
        stream.send(data=pb.Data(index=0, frames=source_frame(WORDS, [b"a"])))
        stream.answer(0)
        worker.process.send_signal(signal.SIGTERM)
        worker.end(STOP_S)
        stream.close()
        stream.replies.cancel()


@check("end: SIGKILL leaves no process behind")
def sigkill(context: Context) -> None:
    with context.start() as worker:
        worker.process.kill()
        worker.process.wait(timeout=STOP_S)
        wait_until(lambda: not alive_in_session(worker.process.pid), "the worker's processes to end", STOP_S)


@check("end: a worker that was killed breaks the stream, which a client repeats")
def broken_stream(context: Context) -> None:
    with context.start() as worker:
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
