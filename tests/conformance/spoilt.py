"""States that cannot be written or read, changes that are not saved, careful calls, and the bound of the cache."""

from itertools import count

from conformance.application import SECOND, bucket_of, stage
from conformance.check import Context, check
from conformance.damage import failure_of
from conformance.poison import END_S, in_flight_file, noted
from conformance.session import BucketStore, StateStream, call
from conformance.stateful import STATE, frames, fresh, outputs, run, written

AT_WORK_OUTSIDE = 1 << 62
NUMBERS = count()


@check("state: one that cannot be written is the dead letter of its message, C504, and as before it")
def unwritable(context: Context) -> None:
    key, store = fresh()
    answer = run(context.worker, store, key, "add", "unwritable", "add")
    assert answer.codes() == [("C504", STATE, 1)]
    assert outputs(answer) == [f"add:{key}=1", f"add:{key}=2"]
    assert answer.letters[0].key == key.encode()
    assert outputs(run(context.other, store, key, "add")) == [f"add:{key}=3"]


@check("state: one that no single message spoilt ends the stream with C511 and its key, not the worker")
def spoilt(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    failed = failure_of(lambda: run(context.worker, store, key, "add", "spoil"))
    assert failed.failure.code == "C511"
    assert key in failed.failure.message
    assert not failed.failure.retriable
    assert outputs(run(context.worker, store, key, "add")) == [f"add:{key}=2"]


@check("state: one of the log that cannot be read ends the stream with C507 and its key, and is no new state")
def unreadable(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add", "unreadable")
    failed = failure_of(lambda: run(context.other, store, key, "add"))
    assert failed.failure.code == "C507"
    assert key in failed.failure.message
    assert not failed.failure.retriable


@check("check persist: with the variable a change that is not persisted is C510, and the state as before")
def checked(context: Context) -> None:
    key, store = fresh()
    with context.start({"WALLAROO_CHECK_PERSIST": "1"}) as worker:
        answer = run(worker, store, key, "add", "forget", "add")
        assert answer.codes() == [("C510", STATE, 1)]
        assert outputs(answer) == [f"add:{key}=1", f"add:{key}=2"]
        again = run(worker, store, key, "forget")
        assert again.codes() == [("C510", STATE, 0)], "of a state that the worker holds"
        assert outputs(run(worker, store, key, "add")) == [f"add:{key}=3"]


@check("check persist: without the variable, no state is looked at")
def not_checked(context: Context) -> None:
    key, store = fresh()
    answer = run(context.worker, store, key, "forget", "silent", "forget")
    assert not answer.letters, answer.codes()


@check("state: a change that was not persisted is saved with the next one that is, while the copy lives")
def saved_later(context: Context) -> None:
    key, store = fresh()
    answer = run(context.worker, store, key, "forget", "add")
    assert outputs(answer) == [f"forget:{key}=1", f"add:{key}=2"]
    assert outputs(run(context.other, store, key, "add")) == [f"add:{key}=3"]


@check("state: a snapshot of keys none of which was ever persisted")
def never_persisted(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "forget")
    answer = run(context.worker, store, key, "add", snapshot=True)
    assert answer.done.snapshot
    assert written(answer) == {key.encode()}


@check("careful: the state is read from the log although the worker has it")
def careful(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    answer = run(context.worker, store, key, "add", careful=True)
    assert answer.rollbacks == [False], "the copy in the worker was used"
    assert outputs(answer) == [f"add:{key}=2"]
    assert outputs(run(context.other, store, key, "add")) == [f"add:{key}=3"]


@check("careful: a message is in flight while the state that it leaves is written; else nobody is")
def deadly(context: Context) -> None:
    for is_careful, expected in ((False, {AT_WORK_OUTSIDE}), (True, {2})):
        key, store = fresh()
        with context.start_process() as worker, in_flight_file() as path:
            data = b"".join(frames(worker, key, "add", "deadly", "add"))
            stream = StateStream(worker, SECOND, store.bucket, str(path))
            stream.ask(store, [data], careful=is_careful)
            worker.end(END_S)
            stream.close()
            stream.replies.cancel()
            assert noted(path)[1] in expected, f"careful {is_careful}: word 8 is {noted(path)[1]}"


@check("cache: copies beyond WALLAROO_STATE_CACHE_BYTES are dropped, and read from their logs again")
def bounded(context: Context) -> None:
    size, copies = 1 << 19, 24
    with context.start({"WALLAROO_STATE_CACHE_BYTES": str(1 << 20)}) as worker:
        stores = []
        key = "cached"
        data = b"".join(frames(worker, key, "keep:" + "x" * size))
        for _ in range(copies):
            description = stage(f"cached {next(NUMBERS)}", *SECOND.nodes)
            stores.append((description, BucketStore(bucket_of(key.encode()))))
            stores[-1][1].commit(call(worker, *stores[-1], [data]))
        answers = [call(worker, *each, frames(worker, key, "add")) for each in stores]
    asked = sum(answer.rollbacks == [False] for answer in answers)
    assert asked > copies // 2, f"{copies} states of {size} bytes in a cache of 1 MiB, {asked} were read again"
    assert {tuple(outputs(answer)) for answer in answers} == {(f"add:{key}=2",)}
