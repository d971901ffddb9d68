"""Visits; of the step `number` of the application Streams."""

from itertools import count
from typing import Any

from conformance.application import bucket_of, part, stage
from conformance.check import Context, check
from conformance.keys import KEYED, NAME, NUMBER, SINK, SOURCE, SUNK, WORDS
from conformance.poison import in_flight_file
from conformance.session import Answer, BucketStore, StateStream, call, process, source_frame
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb

VISIT, NAMES = 65533, count()
ALL = ("show", "add", "forget")


def visited(*names: str) -> pb.Stage:
    """Return a stage of the step with some visits, and a sink."""
    entry = part(NUMBER, "STATE_COMPUTATION", port=KEYED, state="number", state_port=KEYED, visits=names or ALL)
    return stage("visits", entry, part(SINK, "SINK", NUMBER, port=SUNK))


def keys_of_one_bucket(number: int) -> tuple[list[str], BucketStore]:
    """Return keys that no check has used before, in the order of their bytes, and the empty store of their bucket."""
    found: dict[int, list[str]] = {}
    while True:
        key = f"visited{next(NAMES):05}"
        mine = found.setdefault(bucket_of(key.encode()), [])
        mine.append(key)
        if len(mine) == number:
            return mine, BucketStore(bucket_of(key.encode()), counter=0)


def messages(context: Context, texts: list[str], sequence: int = 0) -> bytes:
    """Return the frames of messages, which the worker makes, all of one bucket."""
    exit_ = part(NUMBER, "KEY", NAME, port=KEYED, keys=True)
    nodes = (part(SOURCE, "SOURCE", port=WORDS), part(NAME, "KEY_BY", SOURCE), exit_)
    data = source_frame(WORDS, [text.encode() for text in texts], sequence)
    (answer,) = process(context.streams, stage("visits", *nodes), [data])
    ((_, frames),) = answer.frames.items()
    return b"".join(frames)


def visit(name: str, metadata: str, sequence: int, identity: int = 0, time: int = 0) -> bytes:
    """Return the frame of a visit."""
    value = pb.Visit(id=identity or sequence, name=name, metadata=metadata.encode()).SerializeToString()
    return encode_frame([value], port=VISIT, sequence=sequence, timestamp_ms=time)


def run(context: Context, store: BucketStore, frames: list[bytes], **options: Any) -> Answer:
    """Run one committed bucket call."""
    answer = call(context.streams, visited(), store, [b"".join(frames)], **options)
    store.commit(answer)
    return answer


def counts(answer: Answer) -> list[tuple[int, str, int, int]]:
    """Return what visits came to."""
    return [(each.id, each.path, each.keys, each.failed) for each in answer.done.visits]


@check("visit: each key with state is visited once, in the order of its bytes, at the visit's place")
def each_key(context: Context) -> None:
    (a, b), store = keys_of_one_bucket(2)
    # The frames are in another order than the sequences.
    answer = run(context, store, [visit("show", "!", 3), messages(context, [b, a, a, a], 0), visit("show", "?", 1)])
    expected = [f"{b}=1", f"{b} ? 1", f"{a}=1", f"{a}=2", f"{a} ! 2", f"{b} ! 1", f"{a}=3"]
    assert [text for _, text in answer.texts(SUNK)] == expected
    assert [sequence for sequence, _ in answer.texts(SUNK)] == [0, 1, 1, 2, 3, 3, 3]
    assert counts(answer) == [(1, NUMBER, 1, 0), (3, NUMBER, 2, 0)]
    found = {each.path: (each.messages_in, each.messages_out) for each in answer.done.counts}
    assert found[NUMBER] == (4, 7), "visits are no messages, but what they emit is"


@check("visit: a worker that knows nothing reads the keys from the log")
def from_log(context: Context) -> None:
    (a, b), store = keys_of_one_bucket(2)
    run(context, store, [messages(context, [a, b])])
    store.nonce ^= 1
    answer = run(context, store, [visit("add", "4", 5)])
    assert answer.rollbacks == [False] and counts(answer) == [(5, NUMBER, 2, 0)]
    store.nonce ^= 1
    assert [text for _, text in run(context, store, [visit("show", "", 6)]).texts(SUNK)] == [f"{a}  5", f"{b}  5"]


@check("visit: several of one sequence run by their ids, before its messages")
def order(context: Context) -> None:
    (a,), store = keys_of_one_bucket(1)
    run(context, store, [messages(context, [a])])
    data = [messages(context, [a], 0), visit("show", "2", 0, 12), visit("add", "3", 0, 11), visit("show", "1", 0, 10)]
    assert [text for _, text in run(context, store, data).texts(SUNK)] == [f"{a} 1 1", f"{a} 2 4", f"{a}=5"]


@check("visit: a deleted state is out of the log, and the key may have a new one")
def deleted(context: Context) -> None:
    (a, b), store = keys_of_one_bucket(2)
    run(context, store, [messages(context, [a, b, a])])
    answer = run(context, store, [visit("forget", a, 1), visit("show", "", 2)])
    assert [text for _, text in answer.texts(SUNK)] == [a, f"{b}  1"]
    assert answer.done.keys == 1
    store.nonce ^= 1
    assert [text for _, text in run(context, store, [visit("show", "", 3)]).texts(SUNK)] == [f"{b}  1"]
    again = [messages(context, [a], 0), visit("forget", a, 1), messages(context, [a], 2), visit("forget", b, 3)]
    assert [text for _, text in run(context, store, again).texts(SUNK)] == [f"{a}=1", a, f"{a}=1", b]
    store.nonce ^= 1
    assert [text for _, text in run(context, store, [visit("show", "", 4)]).texts(SUNK)] == [f"{a}  1"]


@check("visit: the in-flight file grows with each key, so that many keys are no call that hangs")
def progress(context: Context) -> None:
    (a, b), store = keys_of_one_bucket(2)
    run(context, store, [messages(context, [a, b])])
    with in_flight_file() as path:
        with StateStream(context.streams, visited(), store.bucket, in_flight=str(path)) as stream:
            stream.ask(store, [visit("show", "", 1) + visit("add", "3", 2)])
            store.commit(stream.answer(store))
        assert int.from_bytes(path.read_bytes()[24:32], "little") == 4


@check("visit: a failure is a dead letter of its key and visit, and the state is as before")
def failure(context: Context) -> None:
    (a, b), store = keys_of_one_bucket(2)
    run(context, store, [messages(context, [a, b, b])])
    answer = run(context, store, [visit("add", "11", 7), visit("show", "", 8)])
    assert answer.codes() == [("C501", NUMBER, 7)], answer.codes()
    (letter,) = answer.letters
    assert (letter.key, letter.has_key, letter.preview.count("11")) == (b.encode(), True, 1)
    assert [text for _, text in answer.texts(SUNK)] == [f"{a}  12", f"{b}  2"]
    assert counts(answer) == [(7, NUMBER, 2, 1), (8, NUMBER, 2, 0)]


@check("visit: one that the node does not name does nothing")
def unnamed(context: Context) -> None:
    (a,), store = keys_of_one_bucket(1)
    run(context, store, [messages(context, [a])])
    data = [visit("show", "", 1), visit("add", "5", 2), visit("other", "", 3), messages(context, [a], 4)]
    answer = call(context.streams, visited("add"), store, [b"".join(data)])
    assert [text for _, text in answer.texts(SUNK)] == [f"{a}=7"]
    assert counts(answer) == [(2, NUMBER, 1, 0)]


@check("visit: a skipped one leaves all states alone")
def skipped(context: Context) -> None:
    (a,), store = keys_of_one_bucket(1)
    data = b"".join([messages(context, [a]), visit("add", "5", 1), visit("show", "", 2)])
    with StateStream(context.streams, visited(), store.bucket) as stream:
        skip = pb.Skip(ordinal=1, code="C508", reason="it fell")
        stream.send(bucket=pb.Bucket(bucket=store.bucket, frames=data, skips=[skip], alone=True))
        answer = stream.answer(store)
    assert [text for _, text in answer.texts(SUNK)] == [f"{a}=1", f"{a}  1"]
    assert [(letter.code, letter.sequence, letter.has_key) for letter in answer.letters] == [("C508", 1, False)]


@check("visit: the input of a dead letter has encoding 0, so that it is not taken for a message")
def letter(context: Context) -> None:
    (a,), store = keys_of_one_bucket(1)
    run(context, store, [messages(context, [a])])
    (found,) = run(context, store, [visit("add", "12", 5)]).letters
    assert (found.path, found.encoding, found.input) == (NUMBER, 0, b"12"), found
