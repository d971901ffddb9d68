"""Calls that stay open: outputs of a part are released, changes come when the call ends."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conformance.application import (
    FIRST,
    SECOND,
    VECTOR_WINDOWS,
    WINDOW_CASES,
    WORDS,
    WORDS_OUT,
    bucket_of,
    part,
    stage,
)
from conformance.check import Context, check
from conformance.damage import failure_of
from conformance.keys import KEYED, NUMBER, SINK, SUNK
from conformance.poison import END_S, in_flight_file, noted, skips
from conformance.process import Client
from conformance.session import Answer, BucketStore, StateStream, keyed, process, source_frame
from conformance.stateful import STATE, frames, fresh, outputs, run, written
from conformance.visit import counts, keys_of_one_bucket, messages, visit, visited
from conformance.window import PORT, STATE_PORT, TICK, failed, frame_of, given, window_stage
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb


@contextmanager
def opened(worker: Client, store: BucketStore, of: pb.Stage = SECOND, in_flight: str = "") -> Iterator[StateStream]:
    """Open a stream for calls that stay open."""
    with StateStream(worker, of, store.bucket, in_flight) as stream:
        yield stream


def words(context: Context, texts: list[str], sequence: int = 0) -> bytes:
    """Return the frames of messages of one bucket."""
    (found,) = keyed(context.worker, WORDS, texts, sequence).values()
    return b"".join(found)


def parts_of(context: Context, key: str, *ops: str) -> list[bytes]:
    """Return a part for each message of a key."""
    return [words(context, [f"{key}:{op}"], at) for at, op in enumerate(ops)]


def in_parts(stream: StateStream, store: BucketStore, parts: list[bytes], **options: Any) -> list[Answer]:
    """Run a call whose parts are all released but the last one; each is sent when the one before was answered."""
    answers = []
    for at, data in enumerate(parts):
        is_last = at == len(parts) - 1
        stream.part(store, data, is_last=is_last, **(options if at == 0 else {**options, "skips": []}))
        answers.append(stream.answer(store))
        assert (answers[-1].done is not None) == is_last, "released or done at the wrong place"
        assert is_last or not answers[-1].changes, "changes before the call's end"
    return answers


def counted(answer: Answer) -> dict[str, tuple[int, int, int]]:
    """Return what the nodes of a call counted."""
    return {each.path: (each.messages_in, each.messages_out, each.dead_letters) for each in answer.done.counts}


@check("release: the outputs of each part come at once, changes and counts with the call's end")
def at_once(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    with opened(context.worker, store) as stream:
        answers = in_parts(stream, store, [*parts_of(context, key, "add", "silent", "add"), b""])
        store.commit(answers[-1])
        assert [outputs(each) for each in answers] == [[f"add:{key}=2"], [], [f"add:{key}=4"], []]
        assert counted(answers[-1])[STATE] == (3, 2, 0)
        assert counted(answers[-1])["0/sinks/0"][1] == 2
        assert written(answers[-1]) == {key.encode()}
        # The next call of the stream is a plain one.
        stream.ask(store, frames(context.worker, key, "add"), index=1)
        answer = stream.answer(store, index=1)
        assert answer.rollbacks == [], "the copy of a call that stayed open is kept like any other"
        assert outputs(answer) == [f"add:{key}=5"]
    store.commit(answer)
    assert outputs(run(context.other, store, key, "add")) == [f"add:{key}=6"]


@check("release: a part of several requests, and one without messages")
def several(context: Context) -> None:
    key, store = fresh()
    first, second, third = parts_of(context, key, "add", "add", "add")
    with opened(context.worker, store) as stream:
        stream.part(store, first, is_released=False)
        stream.part(store, second)
        answer = stream.answer(store)
        assert outputs(answer) == [f"add:{key}=1", f"add:{key}=2"]
        stream.part(store, b"")
        assert not stream.answer(store).messages
        stream.part(store, third, is_last=True)
        answer = stream.answer(store)
    assert outputs(answer) == [f"add:{key}=3"]
    assert counted(answer)[STATE] == (3, 3, 0)


@check("release: parts that are sent ahead wait while the state is read")
def ahead(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    store.nonce ^= 1
    with opened(context.worker, store) as stream:
        for data in parts_of(context, key, "add", "boom", "add"):
            stream.part(store, data)
        stream.part(store, b"", is_last=True)
        answers = [stream.answer(store) for _ in range(4)]
    assert [each.rollbacks for each in answers] == [[False], [True], [], []]
    assert [outputs(each) for each in answers] == [[f"add:{key}=2"], [], [f"add:{key}=3"], []]


@check("release: user code fails in a later part; released parts run again, and nothing of them leaves twice")
def fails_later(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    with opened(context.worker, store) as stream:
        parts = [*parts_of(context, key, "add", "wrong encoding", "add", "boom"), words(context, [key], 4), b""]
        parts[3] += words(context, [key], 3)
        answers = in_parts(stream, store, parts)
    assert [each.rollbacks for each in answers] == [[], [], [], [True], [], []]
    assert [outputs(each) for each in answers] == [
        [f"add:{key}=2"], [], [f"add:{key}=4"], [f"add:{key}=5"], [f"add:{key}=6"], []
    ]  # fmt: skip
    assert [[code for code, _, _ in each.codes()] for each in answers[2:]] == [[], ["C501"], [], []]
    assert [(path, sequence) for _, path, sequence in answers[1].codes()] == [("0/sinks/0", 1)]
    assert answers[3].codes() == [("C501", STATE, 3)]
    assert counted(answers[-1])[STATE] == (6, 5, 1)
    assert counted(answers[-1])["0/sinks/0"] == (5, 4, 1)
    store.commit(answers[-1])
    assert outputs(run(context.other, store, key, "add")) == [f"add:{key}=7"]


@check("release: after a failure the states of released parts are as they were, also those that were not persisted")
def not_persisted(context: Context) -> None:
    key, store = fresh()
    with opened(context.worker, store) as stream:
        answers = in_parts(stream, store, [*parts_of(context, key, "add", "forget", "boom", "boom", "add"), b""])
    assert [outputs(each) for each in answers] == [[f"add:{key}=1"], [f"forget:{key}=2"], [], [], [f"add:{key}=3"], []]
    assert [sequence for each in answers for _, _, sequence in each.codes()] == [2, 3]


@check("release: a state that cannot be written is C504 in the last part, C511 if an earlier one left it so")
def unwritable(context: Context) -> None:
    key, store = fresh()
    with opened(context.worker, store) as stream:
        answers = in_parts(stream, store, parts_of(context, key, "add", "add", "unwritable"))
    assert [outputs(each) for each in answers] == [[f"add:{key}=1"], [f"add:{key}=2"], []]
    assert answers[-1].codes() == [("C504", STATE, 2)]
    assert counted(answers[-1])[STATE] == (3, 2, 1)
    parts = [*parts_of(context, key, "add", "unwritable", "add"), b""]

    def call(**options: Any) -> list[Answer]:
        with opened(context.worker, store) as stream:
            return in_parts(stream, store, parts, **options)

    error = failure_of(lambda: call())
    assert error.failure.code == "C511"
    assert key in error.failure.message
    answers = call(careful=True)
    assert [each.codes() for each in answers] == [[], [("C504", STATE, 1)], [], []]
    assert [outputs(each) for each in answers] == [[f"add:{key}=1"], [], [f"add:{key}=2"], []]


@check("release: a snapshot is of all keys, also those of released parts")
def snapshot(context: Context) -> None:
    key, store = fresh()
    same = [n for n in (f"{key} {i}" for i in range(200)) if bucket_of(n.encode()) == store.bucket][:3]
    run(context.worker, store, same[0], "add")
    parts = [words(context, [name], at) for at, name in enumerate(same[1:])]
    with opened(context.worker, store) as stream:
        for data in parts:
            stream.part(store, data)
            stream.answer(store)
        stream.part(store, b"", is_last=True, wants_snapshot=True)
        answer = stream.answer(store)
    assert answer.done.snapshot
    assert written(answer) == {name.encode() for name in same}


@check("release: skips count over all parts, dead letters leave with their part")
def skipped(context: Context) -> None:
    key, store = fresh()
    parts = [words(context, [key, key]), words(context, [key, key], 2), b""]
    with opened(context.worker, store) as stream:
        answers = in_parts(stream, store, parts, skips=skips(1, 3), alone=True)
    assert [each.codes() for each in answers] == [[("C508", STATE, 1)], [("C508", STATE, 3)], []]
    assert [outputs(each) for each in answers] == [[f"add:{key}=1"], [f"add:{key}=2"], []]
    assert counted(answers[-1])[STATE] == (4, 2, 2)


@check("release: skips count the frames of all parts, also where they overlap")
def skipped_of_overlapping(context: Context) -> None:
    key, store = fresh()
    parts = [words(context, [key] * 3) + words(context, [key]), words(context, [key, key], 3), b""]
    for ordinal, (place, sequence) in enumerate([(0, 0), (0, 1), (0, 2), (0, 0), (1, 3), (1, 4)]):
        with opened(context.worker, store) as stream:
            answers = in_parts(stream, store, parts, skips=skips(ordinal))
        letters = [[("C508", STATE, sequence)] if at == place else [] for at in range(3)]
        assert [each.codes() for each in answers] == letters, f"with skip {ordinal}"


@check("release: a call that is not ended leaves no copy, and calls of other buckets run meanwhile")
def unfinished(context: Context) -> None:
    (key, store), (other, second) = fresh(), fresh()
    while second.bucket == store.bucket:
        other, second = fresh()
    run(context.worker, store, key, "add")
    stream = StateStream(context.worker, SECOND, store.bucket)
    stream.part(store, words(context, [key]))
    assert outputs(stream.answer(store)) == [f"add:{key}=2"]
    with opened(context.worker, second) as another:
        first, last = parts_of(context, other, "add", "add")
        another.part(second, first)
        assert outputs(another.answer(second)) == [f"add:{other}=1"]
        stream.part(store, words(context, [key], 1))
        assert outputs(stream.answer(store)) == [f"add:{key}=3"]
        another.part(second, last, is_last=True)
        answer = another.answer(second)
    assert outputs(answer) == [f"add:{other}=2"]
    assert counted(answer)[STATE] == (2, 2, 0)
    stream.replies.cancel()
    stream.close()
    assert outputs(run(context.worker, store, key, "add")) == [f"add:{key}=2"]


@check("release: in flight, the file counts messages over all parts, and none between them")
def in_flight(context: Context) -> None:
    key, store = fresh()
    with in_flight_file() as path, opened(context.worker, store, in_flight=str(path)) as stream:
        for data in parts_of(context, key, "add", "add"):
            stream.part(store, data)
            stream.answer(store)
            assert noted(path)[:2] == (0, 0), noted(path)
        stream.part(store, b"", is_last=True)
        stream.answer(store)


@check("release: the worker ends in a later part; another one is sent all parts, and the message is skipped")
def killed(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    parts = [*parts_of(context, key, "add", "add", "deadly", "add"), b""]
    with context.start_process() as worker, in_flight_file() as path:
        stream = StateStream(worker, SECOND, store.bucket, str(path))
        for data in parts[:2]:
            stream.part(store, data, careful=True)
            stream.answer(store)
        stream.part(store, parts[2], careful=True)
        worker.end(END_S)
        stream.close()
        stream.replies.cancel()
        assert noted(path)[1] == 1 + 2, noted(path)
    with opened(context.other, store) as stream:
        answers = in_parts(stream, store, parts, careful=True, skips=skips(2))
    assert [outputs(each) for each in answers] == [
        [f"add:{key}=2"], [f"add:{key}=3"], [], [f"add:{key}=4"], []
    ]  # fmt: skip
    assert answers[2].codes() == [("C508", STATE, 2)]


@check("release: windows emit what is due in each part, as in one call")
def windows(context: Context) -> None:
    for case in WINDOW_CASES:
        if case["is_one_call"] or case["window"]["kind"] == "session":
            continue
        description = window_stage(VECTOR_WINDOWS.index(case["window"]), case["name"])
        store, events = BucketStore(0), sorted(case["events"], key=lambda each: each["sequence"])
        with opened(context.streams, store, description) as stream:
            answers = in_parts(stream, store, [*map(frame_of, events), b""])
        expected = [
            (each["sequence"], each["key"], each["time"], " ".join((each["key"], *map(str, each["values"]))))
            for each in case["outputs"]
        ]
        assert given(answers) == expected, case["name"]
        letters = [(each["sequence"], each["key"], each["code"], each["time"]) for each in case["dead_letters"]]
        assert failed(answers) == letters, case["name"]
        assert answers[-1].done.keys == len(case["keys"]), case["name"]


@check("release: visits run in their part, and come back with the call's end")
def visits(context: Context) -> None:
    (a, b), store = keys_of_one_bucket(2)
    parts = [
        messages(context, [b, a], 0), visit("show", "?", 2), visit("add", "11", 3) + messages(context, [a], 4),
        visit("add", "1", 5), visit("show", "!", 6), b"",
    ]  # fmt: skip
    with opened(context.streams, store, visited()) as stream:
        answers = in_parts(stream, store, parts)
    assert [[text for _, text in each.texts(SUNK)] for each in answers] == [
        [f"{b}=1", f"{a}=1"], [f"{a} ? 1", f"{b} ? 1"], [f"{a}=13"], [], [f"{a} ! 14", f"{b} ! 12"], []
    ]  # fmt: skip
    assert not any(each.letters for each in answers[:3])
    assert [(letter.key.decode(), letter.sequence) for letter in answers[3].letters] == [(b, 5)]
    assert [(number, keys, bad) for number, _, keys, bad in counts(answers[-1])] == [
        (2, 2, 0), (3, 2, 0), (5, 2, 1), (6, 2, 0)
    ]  # fmt: skip
    assert counted(answers[-1])[NUMBER][0] == 3


@check("release: a bucket call cut anywhere gives what one call gives")
def cut(context: Context) -> None:
    ops = ["add", "boom", "forget", "silent", "add", "wrong encoding", "add", "boom", "add"]
    (answer,) = process(context.worker, FIRST, [source_frame(WORDS, [b""])])
    assert answer.letters
    for size in range(1, len(ops)):
        key, store = fresh()
        texts = [f"{key}:{op}" for op in ops]
        parts = [words(context, texts[at : at + size], at) for at in range(0, len(ops), size)]
        whole = BucketStore(store.bucket)
        with opened(context.worker, whole) as stream:
            stream.ask(whole, [words(context, texts)])
            one = stream.answer(whole)
        with opened(context.worker, store) as stream:
            answers = in_parts(stream, store, [*parts, b""])
        assert [each for answer in answers for each in answer.texts(WORDS_OUT)] == one.texts(WORDS_OUT)
        assert sorted(each for answer in answers for each in answer.codes()) == sorted(one.codes())
        assert counted(answers[-1]) == counted(one)


def several_steps(number: int) -> pb.Stage:
    """Return a stage in which two windows and a state computation have one exit."""
    found = [f"0/steps/{2 * at + 1}" for at in (number, number + 1)]
    states = [{"state": f"values {number + at}", "state_port": STATE_PORT + 10 * at} for at in range(2)]
    windows = [part(path, "WINDOW", port=PORT + at, codec="int64", **states[at]) for at, path in enumerate(found)]
    count = part(NUMBER, "STATE_COMPUTATION", port=KEYED, state="number", state_port=KEYED, codec="string")
    return stage("several", *windows, count, part(SINK, "SINK", *found, NUMBER, port=SUNK))


@check("release: messages of windows and of other steps leave in the order of their sequences")
def in_order(context: Context) -> None:
    number = next(at for at, each in enumerate(VECTOR_WINDOWS) if each["kind"] == "count" and each["count"] == 3)
    number -= number == len(VECTOR_WINDOWS) - 1
    description = several_steps(number)
    found: list[bytes] = []
    for at in range(12):
        value, keys = struct.pack(">q", at), [b"a"]
        for port in (PORT, PORT + 1):
            found.append(
                encode_frame([value], port=port, sequence=10 * at, timestamp_ms=at, keys=keys, key_indexes=[0])
            )
        found.append(encode_frame([b"a"], port=KEYED, sequence=10 * at + at % 2, keys=keys, key_indexes=[0]))
        found.append(encode_frame([], port=TICK, sequence=10 * at + 5, timestamp_ms=at * 5000))
    ways = []
    for size in (4, 12, len(found)):
        store = BucketStore(bucket_of(b"a"))
        with opened(context.streams, store, description) as stream:
            parts = [b"".join(found[at : at + size]) for at in range(0, len(found), size)]
            answers = in_parts(stream, store, [*parts, b""])
        ways.append([each for answer in answers for each in answer.texts(SUNK)])
    sequences = [sequence for sequence, _ in ways[0]]
    assert len(sequences) > 12, "windows emitted nothing"
    assert sequences == sorted(sequences)
    assert ways[1:] == ways[:1] * 2, "what leaves depends on where parts are cut"
