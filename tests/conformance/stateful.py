"""Stages with state: versions, reload, rollback, deltas and snapshots."""

import re
from itertools import count
from typing import Any

from conformance.application import (
    COUNT,
    DEAD_LETTERS,
    FIRST,
    NUMBERS,
    NUMBERS_OUT,
    SECOND,
    TALLY,
    THIRD,
    WORDS,
    WORDS_OUT,
    bucket_of,
)
from conformance.check import Context, check
from conformance.process import Client
from conformance.session import Answer, BucketStore, StateStream, call, keyed, process, source_frame
from wallaroo.message.frame import encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb

NAMES = count()
STATE, SPREAD_STEP = "0/steps/2", "1/steps/0"


def fresh() -> tuple[str, BucketStore]:
    """Return a key that no check has used before, and the empty store of its bucket."""
    key = f"fresh{next(NAMES)}"
    return key, BucketStore(bucket_of(key.encode()), counter=0)


def frames(worker: Client, key: str, *ops: str, sequence: int = 0) -> list[bytes]:
    """Return the frames of messages of one key, made by the worker's first stage."""
    (found,) = keyed(worker, WORDS, [f"{key}:{op}" for op in ops], sequence).values()
    return found


def run(worker: Client, store: BucketStore, key: str, *ops: str, **options: Any) -> Answer:
    """Run one committed bucket call with messages of one key."""
    answer = call(worker, SECOND, store, [b"".join(frames(worker, key, *ops))], **options)
    store.commit(answer)
    return answer


def outputs(answer: Answer) -> list[str]:
    """Return the texts of the sink Words without the length at their end."""
    return [text.partition(";")[0] for _, text in answer.texts(WORDS_OUT)]


@check("state: the first call has no state and asks for none")
def first(context: Context) -> None:
    key, store = fresh()
    answer = run(context.worker, store, key, "add", "add")
    assert answer.rollbacks == []
    assert outputs(answer) == [f"add:{key}=1", f"add:{key}=2"]
    assert answer.done.keys == 1


@check("state: the copy in the worker is used while its version fits")
def cached(context: Context) -> None:
    key, store = fresh()
    nonces = set()
    for number in range(1, 6):
        answer = run(context.worker, store, key, "add")
        assert outputs(answer) == [f"add:{key}={number}"]
        assert answer.rollbacks == [], "state was asked for although the copy fits"
        nonces.add(answer.done.nonce)
    assert len(nonces) == 5, "a nonce was used twice"


@check("state: another nonce, the stale copy is not used")
def stale_nonce(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    call(context.worker, SECOND, store, frames(context.worker, key, "add", "add"))  # an attempt that never commits
    answer = run(context.worker, store, key, "add")
    assert answer.rollbacks == [False], "the copy of an attempt that never committed was used"
    assert outputs(answer) == [f"add:{key}=2"]


@check("state: the same counter, another nonce")
def same_counter(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    other = BucketStore(store.bucket, store.counter, store.nonce ^ 1, list(store.log))
    answer = call(context.worker, SECOND, other, frames(context.worker, key, "add"))
    assert answer.rollbacks == [False]
    assert outputs(answer) == [f"add:{key}=2"]


@check("state: version (0, 0) is empty whatever the worker holds")
def empty_again(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    answer = call(context.worker, SECOND, BucketStore(store.bucket), frames(context.worker, key, "add"))
    assert outputs(answer) == [f"add:{key}=1"]


@check("state: a worker that knows nothing reads the log, later entries win")
def lost(context: Context) -> None:
    key, store = fresh()
    for _ in range(3):
        run(context.worker, store, key, "add")
    assert len(store.log) == 3
    answer = run(context.other, store, key, "add")
    assert answer.rollbacks == [False]
    assert outputs(answer) == [f"add:{key}=4"]


@check("state: a call that did not end with done leaves no copy")
def broken_off(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    stream = StateStream(context.worker, SECOND, store.bucket)
    (data,) = frames(context.worker, key, "add")
    version = pb.Version(counter=store.counter, nonce=store.nonce)
    stream.send(bucket=pb.Bucket(bucket=store.bucket, version=version, frames=data, more=True))
    stream.replies.cancel()
    stream.close()
    answer = run(context.worker, store, key, "add")
    assert outputs(answer) == [f"add:{key}=2"]


@check("state: several requests of one call, and several calls on one stream")
def pieces(context: Context) -> None:
    key, store = fresh()
    with StateStream(context.worker, SECOND, store.bucket) as stream:
        parts = [b"".join(frames(context.worker, key, "add", sequence=at)) for at in range(4)]
        stream.ask(store, [*parts, b""])
        answer = stream.answer(store)
        assert answer.texts(WORDS_OUT) == [(at, f"add:{key}={at + 1};{len(key) + 4}") for at in range(4)]
        store.commit(answer)
        stream.ask(store, parts[:1], index=1)
        assert outputs(stream.answer(store, index=1)) == [f"add:{key}=5"]


@check("state: a call without messages")
def no_messages(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    answer = call(context.worker, SECOND, store, [b""])
    assert not answer.messages
    store.commit(answer)
    assert outputs(run(context.worker, store, key, "add")) == [f"add:{key}=2"]


@check("state: a failing message leaves its key's state as it was; the others are run once")
def rollback(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add", "add")
    answer = run(context.worker, store, key, "add", "boom", "add", "boom", "add")
    assert answer.rollbacks, "no need_state after a failure"
    assert answer.rollbacks[-1], f"need_state with rollback {answer.rollbacks}"
    assert outputs(answer) == [f"add:{key}={n}" for n in (3, 4, 5)]
    assert answer.codes() == [("C501", STATE, 1), ("C501", STATE, 3)], answer.codes()
    letter = answer.letters[0]
    assert (letter.has_key, letter.key, letter.step) == (True, key.encode(), "count")
    assert "boom" in letter.preview
    assert letter.input
    assert letter.error
    assert "\n" not in letter.error


@check("state: a failing message of a new bucket needs no state from outside")
def rollback_of_nothing(context: Context) -> None:
    key, store = fresh()
    answer = run(context.worker, store, key, "boom", "add")
    assert outputs(answer) == [f"add:{key}=1"]
    assert answer.codes() == [("C501", STATE, 0)]


@check("state: after a failure the committed state holds no trace of it")
def rollback_committed(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add", "boom")
    assert outputs(run(context.other, store, key, "add")) == [f"add:{key}=2"]
    assert outputs(run(context.worker, store, key, "add"))  # the first worker must notice that its copy is old


@check("state: a result of the wrong type is a dead letter")
def wrong_pair(context: Context) -> None:
    key, store = fresh()
    answer = run(context.worker, store, key, "add", "wrong pair", "add")
    assert outputs(answer) == [f"add:{key}=1", f"add:{key}=2"]
    ((code, path, sequence),) = answer.codes()
    assert code in context.wrong_result(), code
    assert (path, sequence) == (STATE, 1)


@check("state: an output of None goes no further, its state stays")
def silent(context: Context) -> None:
    key, store = fresh()
    assert outputs(run(context.worker, store, key, "silent", "add")) == [f"add:{key}=2"]


@check("state: what is not persisted is not in the changes")
def not_persisted(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    answer = run(context.worker, store, key, "forget")
    assert outputs(answer) == [f"forget:{key}=2"]
    assert not answer.changes, "state was written although the computation did not ask for it"
    assert outputs(run(context.other, store, key, "add")) == [f"add:{key}=2"]


@check("state: a delta holds the changed keys alone, a snapshot all of them")
def delta(context: Context) -> None:
    key, store = fresh()
    same = [n for n in (f"{key} {i}" for i in range(200)) if bucket_of(n.encode()) == store.bucket][:3]
    for name in same:
        run(context.worker, store, name, "add")
    answer = run(context.worker, store, same[0], "add")
    assert not answer.done.snapshot
    assert written(answer) == {same[0].encode()}
    assert answer.done.keys == 3
    snapshot = run(context.worker, store, same[1], "add", snapshot=True)
    assert snapshot.done.snapshot, "no snapshot although it was wanted"
    assert written(snapshot) == {name.encode() for name in same}
    assert outputs(run(context.other, store, same[0], "add")) == [f"add:{same[0]}=3"]
    assert outputs(run(context.other, store, same[2], "add")) == [f"add:{same[2]}=2"]


def written(answer: Answer) -> set[bytes]:
    """Return the keys in the changes; assert the form of their frames."""
    found = set()
    for entry in answer.changes:
        frame = read_frame(entry)
        assert frame.header.flags & 1, "a change without keys"
        assert frame.header.port == COUNT, f"a change with port {frame.header.port}; state_port is {COUNT}"
        found |= {frame.keys[index] for index in frame.key_indexes}
    return found


@check("state: an absent entry of the log means no state")
def tombstone(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add", "add")
    encoding = read_frame(store.log[0]).header.encoding
    store.log.append(
        encode_frame([b""], port=COUNT, encoding=encoding, keys=[key.encode()], key_indexes=[0], absent=[0])
    )
    store.nonce ^= 2
    assert outputs(run(context.worker, store, key, "add")) == [f"add:{key}=1"]


@check("state: buckets do not share state, nor do stages")
def apart(context: Context) -> None:
    (key, store), (other, second) = fresh(), fresh()
    run(context.worker, store, key, "add")
    run(context.worker, second, other, "add")
    assert outputs(run(context.worker, store, key, "add")) == [f"add:{key}=2"]


@check("encoder: str, bytes, None, a raise and a wrong type")
def encoder(context: Context) -> None:
    key, store = fresh()
    answer = run(context.worker, store, key, "add", "bytes", "unsent", "unencodable", "wrong encoding", "add")
    assert outputs(answer) == [f"add:{key}=1", f"bytes:{key}=2", f"add:{key}=6"]
    assert [(path, sequence) for _, path, sequence in answer.codes()] == [("0/sinks/0", 3), ("0/sinks/0", 4)]
    assert answer.letters[0].code == "C501"
    assert answer.letters[1].code in context.wrong_result()


@check("closed list: a key that is not in it is C502")
def closed(context: Context) -> None:
    found = keyed(context.worker, NUMBERS, ["7:a", "300:b", "18446744073709551615:c", "7:boom", "7:nothing", "7:d"], 50)
    texts, codes = [], []
    for bucket, data in found.items():
        answer = call(context.worker, SECOND, BucketStore(bucket), [b"".join(data)])
        codes += answer.codes()
        for number, frame in answer.frames.items():
            tally = call(context.worker, THIRD, BucketStore(number), frame)
            assert not tally.letters
            texts += tally.texts(NUMBERS_OUT)
    assert sorted(codes) == [("C501", SPREAD_STEP, 53), ("C502", SPREAD_STEP, 51)], codes
    assert sorted(texts) == sorted([
        (50, "1 7:A/1/1"), (50, "2 7:A/1/2"),
        (52, "1 18446744073709551615:C/1/1"), (52, "2 18446744073709551615:C/1/2"),
        (55, "3 7:D/3/1"), (55, "4 7:D/3/2"),
    ]), texts  # fmt: skip


@check("state: a stage that routes on gives keyed frames in order")
def onward(context: Context) -> None:
    key = (7).to_bytes(8, "big")
    (data,) = keyed(context.worker, NUMBERS, [f"7:{i}" for i in range(50)]).values()
    answer = call(context.worker, SECOND, BucketStore(bucket_of(key)), [b"".join(data)])
    routed = [m for m in answer.messages if m.port == TALLY]
    assert [m.sequence for m in routed] == [i // 2 for i in range(100)]
    assert {m.key for m in routed} == {b"7"}


@check("state: a message of 5 MiB")
def large(context: Context) -> None:
    key, store = fresh()
    answer = run(context.worker, store, key, "add:" + "x" * (5 << 20))
    ((_, text),) = answer.texts(WORDS_OUT)
    assert re.fullmatch(f"add:{key}=1;{(5 << 20) + len(key) + 5}", text), text[:80]


@check("state: many keys in one call")
def many_keys(context: Context) -> None:
    names = [name for name in (f"many{i}" for i in range(4000)) if bucket_of(name.encode()) == 0]
    (made,) = process(context.worker, FIRST, [source_frame(WORDS, [",".join(names).encode()] * 2)])
    answer = call(context.worker, SECOND, BucketStore(0), made.frames[0])
    assert outputs(answer) == [f"add:{name}={n}" for n in (1, 2) for name in names]
    assert answer.done.keys == len(names)
    assert written(answer) == {name.encode() for name in names}
    assert not [m for m in answer.messages if m.port == DEAD_LETTERS]
