"""What a worker must refuse: damaged frames, stages that it does not host."""

from collections.abc import Callable

import grpc

from conformance.application import COUNT, FIRST, SECOND, WORDS, bucket_of, node, stage
from conformance.check import Context, check
from conformance.session import BucketStore, Failed, ProcessStream, call, keyed, process, source_frame
from wallaroo.message.frame import FRAMED, FrameHeader, encode_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb


def failure_of(action: Callable[[], object]) -> Failed:
    """Run what must fail and return the failure."""
    try:
        action()
    except Failed as failed:
        return failed
    except grpc.RpcError as error:
        msg = f"the stream broke instead of a failure: {error}"
        raise AssertionError(msg) from error
    msg = "no failure"
    raise AssertionError(msg)


def works(context: Context) -> None:
    """Assert that the worker still does its work."""
    (answer,) = process(context.worker, FIRST, [source_frame(WORDS, [b"a"])])
    assert answer.keyed(COUNT) == [(0, b"a")]


@check("damage: each kind of damaged frame is W410, and the worker lives on")
def damaged(context: Context) -> None:
    good = source_frame(WORDS, [b"a", b"b"])
    cases = {
        "flipped bit": good[:-1] + bytes([good[-1] ^ 1]),
        "cut": good[:-1],
        "cut header": good[:39],
        "magic": b"X" + good[1:],
        "rubbish after a frame": good + b"rubbish",
        "zeros": bytes(64),
        "huge count": good[:8] + b"\xff" * 4 + good[12:],
    }
    for name, data in cases.items():
        failed = failure_of(lambda data=data: process(context.worker, FIRST, [data]))  # type: ignore[misc]
        assert failed.failure.code == "W410", f"{name}: {failed.failure}"
        assert failed.failure.message, name
    works(context)


@check("frames: one without messages is passed over, whatever its encoding")
def empty(context: Context) -> None:
    good = source_frame(WORDS, [b"a"])
    nothing = [encode_frame([], port=WORDS, encoding=encoding) for encoding in (0, 16)]
    nothing.append(write_frame(FrameHeader(WORDS, 0, 0, encoding=FRAMED), []))
    (answer,) = process(context.worker, FIRST, [b"".join((*nothing, good, *nothing))])
    assert answer.keyed(COUNT) == [(0, b"a")]
    assert not answer.letters, answer.codes()
    (frames,) = keyed(context.worker, WORDS, ["empty"]).values()
    store = BucketStore(bucket_of(b"empty"))
    keyless = encode_frame([], port=COUNT, sequence=9)
    framed = write_frame(FrameHeader(COUNT, 0, 0, encoding=FRAMED), [])
    answer = call(context.worker, SECOND, store, [b"".join((keyless, framed, *frames, keyless))])
    assert (len(answer.messages), answer.done.keys) == (1, 1)


@check("frames: bytes for no message are damage")
def bytes_for_none(context: Context) -> None:
    framed = write_frame(FrameHeader(WORDS, 0, 0, encoding=FRAMED), [bytes(4)])
    assert failure_of(lambda: process(context.worker, FIRST, [framed])).failure.code == "W410"


@check("damage: what came before a damaged frame is still answered")
def after_good(context: Context) -> None:
    stream = ProcessStream(context.worker, FIRST)
    good = source_frame(WORDS, [b"a"])
    stream.send(data=pb.Data(index=0, frames=good))
    assert stream.answer(0).keyed(COUNT) == [(0, b"a")]
    stream.send(data=pb.Data(index=1, frames=good[:-1]))
    assert failure_of(stream.receive).failure.code == "W410"


@check("damage: a damaged log entry is W410, not an empty state")
def damaged_log(context: Context) -> None:
    key = "damaged"
    (frames,) = keyed(context.worker, WORDS, [key]).values()
    store = BucketStore(bucket_of(key.encode()))
    store.commit(call(context.worker, SECOND, store, frames))
    entry = store.log[0]
    store.log = [entry[:-1] + bytes([entry[-1] ^ 1])]
    store.nonce ^= 1
    assert failure_of(lambda: call(context.worker, SECOND, store, frames)).failure.code == "W410"
    works(context)


@check("stage: a path that the worker does not host is W403")
def unknown_stage(context: Context) -> None:
    strange = stage("x", node("0/sources/0", "SOURCE"), node("0/steps/9", "COMPUTATION", "0/sources/0"))
    failed = failure_of(lambda: process(context.worker, strange, [source_frame(WORDS, [b"a"])]))
    assert failed.failure.code == "W403", failed.failure
    assert "0/steps/9" in failed.failure.message
    assert not failed.failure.retriable
    works(context)


@check("stage: a path of another kind is W403")
def other_kind(context: Context) -> None:
    strange = stage("x", node("0/sources/0", "SOURCE"), node("0/steps/1", "COMPUTATION", "0/sources/0"))
    assert failure_of(lambda: process(context.worker, strange, [source_frame(WORDS, [b"a"])])).failure.code == "W403"
    works(context)
