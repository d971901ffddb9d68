"""Large states: they stand in the log in pieces, which every worker reads."""

import struct
from collections.abc import Callable

from conformance.application import SECOND
from conformance.check import Context, check
from conformance.damage import failure_of
from conformance.session import BucketStore, call
from conformance.stateful import frames, fresh, outputs, run
from wallaroo.message.frame import Frame, encode_frame, read_frame

PIECE_BYTES = 4 << 20
HEADER = struct.Struct("<H5sIII")  # length of the name, the name, length of the value; number and count
MANY = "x" * (5 << 20)


def header(number: int, count: int) -> bytes:
    """Return the header of a piece."""
    return HEADER.pack(5, b"piece", 8, number, count)


def piece(entry: Frame, data: bytes, number: int, count: int) -> bytes:
    """Return a piece of the state in an entry."""
    return encode_frame(
        [data], port=entry.header.port, encoding=entry.header.encoding, keys=entry.keys, key_indexes=[0],
        headers=[header(number, count)],
    )  # fmt: skip


def cut(entry: bytes, count: int) -> list[bytes]:
    """Return the state in an entry as pieces."""
    frame = read_frame(entry)
    size = -(-len(frame.data) // count)
    parts = [frame.data[at * size : (at + 1) * size] for at in range(count)]
    return [piece(frame, part, number, count) for number, part in enumerate(parts)]


def has_pieces(context: Context) -> bool:
    """Say whether states of the worker may have more than 4 MiB; else C525 says so, and it needs no pieces."""
    key, store = fresh()
    answer = call(context.worker, SECOND, store, frames(context.worker, key, f"keep:{MANY}"))
    return [code for code, _, _ in answer.codes()] != ["C525"]


def small(context: Context) -> tuple[str, BucketStore]:
    """Return a key that has counted to 2, and its store with one entry in the log."""
    key, store = fresh()
    run(context.worker, store, key, "add", "add")
    assert len(store.log) == 1, f"{len(store.log)} entries for one key"
    return key, store


@check("pieces: a state above 4 MiB is written in pieces, which another worker joins")
def written(context: Context) -> None:
    if not has_pieces(context):
        return
    key, store = fresh()
    answer = run(context.worker, store, key, f"keep:{MANY}")
    found = [read_frame(entry) for entry in answer.changes]
    lengths = [len(frame.data) for frame in found]
    assert [frame.header.count for frame in found] == [1] * len(found)
    assert lengths[:-1] == [PIECE_BYTES] * (len(lengths) - 1), lengths
    assert sum(lengths) > len(MANY)
    assert [frame.headers for frame in found] == [[header(at, len(found))] for at in range(len(found))]
    assert {(frame.header.port, frame.header.encoding, *frame.keys) for frame in found} == {
        (found[0].header.port, found[0].header.encoding, key.encode())
    }
    store.counter += 1  # a version that nobody holds: the state comes from the log
    assert outputs(run(context.other, store, key, "add")) == [f"add:{key}=2"]


@check("pieces: they are read whatever their lengths, and later entries win")
def read(context: Context) -> None:
    if not has_pieces(context):
        return
    for count in (2, 3, 7):
        key, store = small(context)
        (entry,) = store.log
        run(context.worker, store, key, "add")
        store.log = [*store.log, *cut(entry, count)]
        store.counter += 1
        answer = call(context.other, SECOND, store, frames(context.worker, key, "add"))
        assert outputs(answer) == [f"add:{key}=3"], count


@check("pieces: one that is missing, twice, out of turn or between others is W410")
def damaged(context: Context) -> None:
    if not has_pieces(context):
        return
    wrongs: dict[str, Callable[[list[bytes], bytes], list[bytes]]] = {
        "the first is missing": lambda parts, _: parts[1:],
        "the last is missing": lambda parts, _: parts[:-1],
        "one is missing": lambda parts, _: [parts[0], parts[2]],
        "one twice": lambda parts, _: [parts[0], *parts],
        "out of turn": lambda parts, _: [parts[1], parts[0], parts[2]],
        "another entry between": lambda parts, entry: [parts[0], entry, *parts[1:]],
        "another count": lambda parts, entry: [parts[0], *cut(entry, 4)[1:]],
    }
    for name, wrong in wrongs.items():
        key, store = small(context)
        (entry,) = store.log
        store.log = wrong(cut(entry, 3), entry)
        store.counter += 1
        given = frames(context.worker, key, "add")
        failed = failure_of(lambda store=store, given=given: call(context.other, SECOND, store, given))  # type: ignore[misc]
        assert failed.failure.code == "W410", f"{name}: {failed.failure}"
