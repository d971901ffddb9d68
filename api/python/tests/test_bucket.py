"""State stages: versions, rollback, snapshots, persistence."""

import pickle
import threading
from typing import Any, ClassVar

import pytest
from call_case import attempt, closed_call

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.frame import FrameError, encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.state import BucketKey, BucketState, Version
from wallaroo.worker.bucket.state_cache import StateCache
from wallaroo.worker.host.call import BucketProtocolError, failure_of
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import TEXT, NotSerializableError, StateReadError, ValueCodec, encode_text


class Log:
    """A state that remembers its messages."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.extra: Any = None


@wallaroo.state_computation("remember")
def remember(data: str, state: Log) -> Any:
    state.seen.append(data)
    if data.startswith("boom"):
        msg = "boom"
        raise ValueError(msg)
    if data == "wrong":
        return data
    if data == "lambda":
        state.extra = lambda: 0
    if data == "lock":
        state.extra = {"guards": [5, threading.Lock()]}
    return ",".join(state.seen), data != "unsaved"


@wallaroo.state_computation_multi("all")
def remember_all(data: str, state: Log) -> Any:
    state.seen.append(data)
    return {"five": 5, "none": None}.get(data, [*state.seen, None]), True


@wallaroo.partition
def first(data: str) -> str:
    return data[0]


def make(kit: Any, computation: Any = remember, keys: tuple[str, ...] = (), **options: Any) -> Stage:
    app = kit.build(
        lambda builder: builder.to_state_partition(computation, Log, "log", first, keys, **options),
        encoder=plain,
    )
    return Stage(app, kit.stage_of(app, "0/steps/0"))


@wallaroo.encoder
def plain(data: str) -> str:
    return data


def keyed(messages: list[tuple[str, str]], port: int = 1) -> bytes:
    keys = list(dict.fromkeys(key for key, _ in messages))
    lengths, data = encode_text([message for _, message in messages])
    values, at = [], 0
    for length in lengths:
        values.append(data[at : at + length])
        at += length
    return encode_frame(
        values, port=port, encoding=TEXT, keys=[key.encode() for key in keys],
        key_indexes=[keys.index(key) for key, _ in messages], sequences=range(len(messages)),
    )  # fmt: skip


def entries(result: BucketResult) -> list[bytes]:
    return [entry for change in result.changes for entry in change.entries]


def stored(stage: Stage, result: BucketResult) -> dict[bytes, list[str]]:
    state = BucketState(stage.codec)
    state.read(entries(result))
    return {key: stage.codec.load(cell.data).seen for key, cell in state.table(1).items()}


def run(stage: Stage, messages: list[tuple[str, str]], log: list[bytes] = [], **wishes: Any) -> BucketResult:  # noqa: B006
    """Do what the service does."""

    def committed() -> BucketState:
        state = BucketState(stage.codec)
        state.read(log)
        return state

    call = pb.Bucket(index=0, bucket=0, **wishes)
    return closed_call(stage, call, [keyed(messages)], committed(), committed)[0]


def test_each_key_has_its_state_and_only_changed_keys_are_written(kit: Any) -> None:
    stage = make(kit)
    result = run(stage, [("a", "x"), ("b", "y"), ("a", "z")])
    assert kit.sunk(result.outputs) == [(0, b"x"), (1, b"y"), (2, b"x,z")]
    assert stored(stage, result) == {b"a": ["x", "z"], b"b": ["y"]}
    again = run(stage, [("b", "q")], entries(result))
    assert kit.sunk(again.outputs) == [(0, b"y,q")]
    assert stored(stage, again) == {b"b": ["y", "q"]}
    assert again.done.keys == 2


def test_persist_false_writes_nothing(kit: Any) -> None:
    stage = make(kit)
    assert not run(stage, [("a", "unsaved")]).changes
    assert not run(stage, [("a", "unsaved")], wants_snapshot=True).changes
    assert stored(stage, run(stage, [("a", "unsaved"), ("a", "x")])) == {b"a": ["unsaved", "x"]}


def test_a_snapshot_has_all_keys(kit: Any) -> None:
    stage = make(kit)
    log = entries(run(stage, [("a", "x"), ("b", "y")]))
    result = run(stage, [("c", "z")], log, wants_snapshot=True)
    assert result.done.snapshot
    assert stored(stage, result) == {b"a": ["x"], b"b": ["y"], b"c": ["z"]}


@pytest.mark.parametrize(
    ("bad", "code", "error"),
    [
        ("boom", "C501", "ValueError: boom"),
        ("wrong", "C503", "returned 'wrong'; expected a tuple (message or None, persist)"),
        ("lambda", "C504", "Log cannot be serialized; "),
        (
            "lock",
            "C504",
            "Log cannot be serialized; TypeError: cannot pickle '_thread.lock' object; at Log.extra['guards'][1]; "
            "keep only what can be pickled in the state, no lock, file, generator or lambda: leave such a field out "
            "with __getstate__, or define serialize and deserialize next to application_setup",
        ),
    ],
)
def test_a_failure_leaves_the_state_as_before_that_message(kit: Any, bad: str, code: str, error: str) -> None:
    stage = make(kit)
    log = entries(run(stage, [("a", "before")]))
    messages = [("a", "x"), ("b", bad), ("a", bad), ("a", "y"), ("b", "z"), ("a", bad), ("c", "q")]
    result = run(stage, messages, log)
    assert kit.sunk(result.outputs) == [(0, b"before,x"), (3, b"before,x,y"), (4, b"z"), (6, b"q")]
    assert stored(stage, result) == {b"a": ["before", "x", "y"], b"b": ["z"], b"c": ["q"]}
    found = kit.letters(result.outputs)
    assert [(letter.code, letter.sequence, letter.key, letter.has_key) for letter in found] == [
        (code, 1, b"b", True), (code, 2, b"a", True), (code, 5, b"a", True)
    ]  # fmt: skip
    assert all(letter.error.startswith(error) for letter in found)
    assert [(each.messages_in, each.messages_out, each.dead_letters) for each in result.done.counts] == [
        (7, 4, 3), (4, 4, 0)
    ]  # fmt: skip


def test_a_state_that_is_never_persisted_need_not_be_serializable(kit: Any) -> None:
    @wallaroo.state_computation("open")
    def opened(data: str, state: Log) -> Any:
        state.extra = lambda: 0
        if data == "boom":
            raise ValueError(data)
        return data, False

    result = run(make(kit, opened), [("a", "x"), ("a", "boom"), ("a", "y")])
    assert kit.sunk(result.outputs) == [(0, b"x"), (2, b"y")]


def test_several_outputs(kit: Any) -> None:
    stage = make(kit, remember_all)
    result = run(stage, [("a", "x"), ("a", "none"), ("a", "five"), ("a", "y")])
    assert kit.sunk(result.outputs) == [(0, b"x"), (3, b"x"), (3, b"none"), (3, b"y")]
    (letter,) = kit.letters(result.outputs)
    assert letter.error == "returned (5, True); expected a tuple (list of messages or None, persist)"


def test_a_closed_list_makes_dead_letters_of_other_keys(kit: Any) -> None:
    stage = make(kit, keys=("a", "b"), unknown_keys="dead_letter")
    result = run(stage, [("a", "x"), ("q", "y"), ("b", "z")])
    assert kit.sunk(result.outputs) == [(0, b"x"), (2, b"z")]
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.error, letter.key) == ("C502", "key 'q' is not in the key list of state \"log\"", b"q")


def test_a_state_class_that_raises_makes_dead_letters(kit: Any) -> None:
    class Broken:
        def build(self) -> Any:
            msg = "no state"
            raise RuntimeError(msg)

    app = kit.build(lambda builder: builder.to_state_partition(remember, Broken(), "log", first), encoder=plain)
    result = run(Stage(app, kit.stage_of(app, "0/steps/0")), [("a", "x")])
    assert [letter.error for letter in kit.letters(result.outputs)] == ["RuntimeError: no state"]


def test_large_changes_are_cut_into_entries(kit: Any) -> None:
    stage = make(kit)
    result = run(stage, [(f"k{at}", "x" * 300_000) for at in range(10)])
    sizes = [len(entry) for entry in entries(result)]
    assert len(sizes) == 4
    assert max(sizes) <= 1 << 20
    assert len(stored(stage, result)) == 10


def test_later_entries_win_and_tombstones_remove(kit: Any) -> None:
    stage = make(kit)
    one = entries(run(stage, [("a", "x"), ("b", "y")]))
    two = entries(run(stage, [("a", "z")], one))
    gone = encode_frame([b""], port=1, encoding=16, keys=[b"b"], key_indexes=[0], absent=[0])
    result = run(stage, [("c", "q")], [*one, *two, gone], wants_snapshot=True)
    assert stored(stage, result) == {b"a": ["x", "z"], b"c": ["q"]}


@wallaroo.state_computation("spoil")
def spoil(data: str, state: Log) -> Any:
    state.extra = (lambda: 0) if data == "spoil" else data
    return None, data != "spoil"


def test_a_state_that_is_spoilt_without_persistence_names_step_and_key(kit: Any) -> None:
    stage = make(kit, spoil)
    with pytest.raises(DiagnosticError) as caught:
        run(stage, [("a", "x"), ("b", "y"), ("b", "spoil")])
    (finding,) = caught.value.diagnostics
    assert finding.code == "C511"
    assert finding.message.startswith("spoil: the state of key 'b' cannot be serialized; ")
    assert failure_of(caught.value).code == "C511"


def test_a_state_that_the_users_deserialize_does_not_read_is_found_when_it_is_written(kit: Any) -> None:
    def read(data: bytes) -> Any:
        value = pickle.loads(data)
        if isinstance(value, Log) and "odd" in value.seen:
            message = "this I do not read"
            raise ValueError(message)
        return value

    app = kit.build(lambda builder: builder.to_state_partition(remember, Log, "log", first), encoder=plain)
    app.serializer = wallaroo.message.serialization.Serializer(pickle.dumps, read, True)
    stage = Stage(app, kit.stage_of(app, "0/steps/0"))
    result = run(stage, [("a", "x"), ("b", "odd"), ("a", "y")])
    assert stored(stage, result) == {b"a": ["x", "y"]}
    (letter,) = kit.letters(result.outputs)
    assert letter.code == "C504"
    assert "it cannot be read back; ValueError: this I do not read" in letter.error


def test_a_state_that_cannot_be_read_stops_the_call(kit: Any) -> None:
    stage = make(kit)
    log = [encode_frame([b"not a pickle"], port=1, encoding=16, keys=[b"a"], key_indexes=[0])]
    with pytest.raises(StateReadError):
        run(stage, [("a", "x")], log)


def test_the_cache_gives_a_copy_only_for_its_version_and_evicts_whole_buckets() -> None:
    codec = ValueCodec(wallaroo.message.serialization.Serializer())
    keys = [BucketKey("a", "q", "s", bucket) for bucket in range(3)]
    cache = StateCache(limit_bytes=2500)
    for key in keys:
        state = BucketState(codec)
        state.read([encode_frame([b"x" * 900], port=1, encoding=codec.encoding, keys=[b"k"], key_indexes=[0])])
        cache.file(key, Version(1, 7), state)
    assert cache.take(keys[0], Version(1, 7)) is None
    assert cache.take(keys[1], Version(1, 8)) is None
    assert cache.take(keys[1], Version(1, 7)) is None
    assert cache.take(keys[2], Version(1, 7)) is not None
    assert cache.take(keys[2], Version(1, 7)) is None


def test_single_state_has_the_empty_key(kit: Any) -> None:
    app = kit.build(lambda builder: builder.to_stateful(remember, Log, "log"), encoder=plain)
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, kit.wire([b"x", b"y"]))
    (output,) = outputs
    assert read_frame(output.frame).keys == [b""]
    stage = Stage(app, kit.stage_of(app, "0/steps/0"))
    result = attempt(stage, pb.Bucket(index=0), [output.frame], BucketState(ValueCodec(app.serializer)))
    assert result is not None
    assert kit.sunk(result.outputs) == [(0, b"x"), (1, b"x,y")]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            StateReadError(b"a", AttributeError("no class")),
            "C507",
            "the state of key b'a' cannot be read; AttributeError: no class",
        ),
        (
            NotSerializableError(Log(), TypeError("lock")),
            "C504",
            "a snapshot: Log cannot be serialized; TypeError: lock",
        ),
        (BucketProtocolError("what"), "I901", "what"),
        (FrameError("cut"), "W410", 'worker "main": the protocol is broken; a frame is damaged; cut'),
        (ZeroDivisionError("x"), "I901", "ZeroDivisionError: x"),
    ],
)
def test_failures_cross_the_process_border_with_their_code(error: Exception, code: str, message: str) -> None:
    failure = failure_of(error)
    assert (failure.code, failure.message, failure.retriable) == (code, message, False)
    assert bool(failure.traceback) == isinstance(error, ZeroDivisionError)


def test_a_key_without_a_message_gets_no_state(kit: Any) -> None:
    """A key exit leaves the key of a message that it could not serialize in its frame."""
    stage = make(kit)
    frame = encode_frame([b"x"], port=1, encoding=TEXT, keys=[b"gone", b"a"], key_indexes=[1])
    result = attempt(stage, pb.Bucket(index=0), [frame], BucketState(stage.codec))
    assert result is not None
    assert result.done.keys == 1


class Made:
    """A state whose class fails if asked to."""

    fails: ClassVar[bool] = False

    def __init__(self) -> None:
        if Made.fails:
            msg = "no state"
            raise ValueError(msg)
        self.count = 0


@wallaroo.state_computation("made")
def fill(data: str, state: Made) -> Any:
    state.count += 1
    Made.fails = data == "boom"
    if data == "boom":
        msg = "boom"
        raise ValueError(msg)
    return data, True


def test_a_state_that_cannot_be_made_again_makes_dead_letters(kit: Any) -> None:
    app = kit.build(lambda builder: builder.to_state_partition(fill, Made, "made", first), encoder=plain)
    stage = Stage(app, kit.stage_of(app, "0/steps/0"))

    def empty() -> BucketState:
        Made.fails = False
        return BucketState(stage.codec)

    frames = [keyed([("a", "x"), ("b", "boom"), ("b", "y"), ("a", "z")])]
    result, _ = closed_call(stage, pb.Bucket(index=0), frames, empty(), empty)
    assert kit.sunk(result.outputs) == [(0, b"x"), (3, b"z")]
    assert [(each.sequence, each.code) for each in kit.letters(result.outputs)] == [(1, "C501"), (2, "C501")]
