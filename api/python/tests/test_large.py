"""Values and states that are too large, large ones that are not, and states in pieces."""

import os
import pickle
from typing import Any

import pytest
from call_case import closed_call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wallaroo
from wallaroo.message import state_piece
from wallaroo.message.frame import FrameError, encode_frame, read_frame
from wallaroo.message.serialization import Serializer
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.state import MAX_STATE_BYTES, BucketState
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value import letter_box
from wallaroo.worker.value.value import TEXT, ValueCodec

MIB = 1 << 20
HUGE = 65 * MIB
same_functions = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
sizes = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 300)), min_size=1, max_size=12)


@wallaroo.computation("sized")
def sized(data: str) -> tuple[str, str]:
    """Give a key and a value of the lengths that a message says."""
    key, value = map(int, data.split())
    return "k" * key, "v" * value


@wallaroo.partition
def key_of(pair: tuple[str, str]) -> str:
    return pair[0]


@wallaroo.encoder
def value_only(pair: tuple[str, str]) -> str:
    return pair[1]


@wallaroo.state_computation("keep")
def keep(pair: tuple[str, str], state: list[Any]) -> tuple[Any, bool]:
    return pair, False


def to_sink(kit: Any, frame_bytes: int = 1 << 20) -> Stage:
    app = kit.build(lambda builder: builder.to(sized), encoder=value_only)
    return Stage(app, kit.stage_of(app, "0/sources/0", frame_bytes=frame_bytes))


def to_shuffle(kit: Any, frame_bytes: int = 1 << 20, buckets: int = 4) -> Stage:
    app = kit.build(
        lambda builder: builder.to(sized),
        lambda builder: builder.to_state_partition(keep, list, "kept", key_of),
        encoder=value_only,
    )
    return Stage(app, kit.stage_of(app, "0/sources/0", frame_bytes=frame_bytes, buckets=buckets))


def run_sizes(kit: Any, stage: Stage, pairs: list[tuple[int, int]]) -> list[pb.Output]:
    return stage.run(0, kit.wire([f"{key} {value}".encode() for key, value in pairs]))


@same_functions
@given(pairs=sizes)
def test_a_value_above_the_limit_is_a_dead_letter_at_its_sink(
    kit: Any, monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(letter_box, "MAX_VALUE_BYTES", 150)
    stage = to_sink(kit, 1)  # what exceeds the real limit has a frame of its own
    outputs = run_sizes(kit, stage, pairs)
    assert [len(value) for _, value in kit.sunk(outputs)] == [value for _, value in pairs if value <= 150]
    found = kit.letters(outputs)
    assert [(each.code, each.path, each.sequence) for each in found] == [
        ("C525", "0/sinks/0", at) for at, (_, value) in enumerate(pairs) if value > 150
    ]
    assert all(f"its value has {pairs[each.sequence][1]} bytes; at most 150" in each.error for each in found)
    assert {each.path: each.dead_letters for each in stage.counts()}["0/sinks/0"] == len(found)


@wallaroo.encoder
def long_text(number: str) -> Any:
    """Give so many characters of one, two or four bytes, or bytes."""
    character, count = number[0], int(number[1:])
    return bytes(count) if character == "0" else character * count


@same_functions
@given(st.lists(st.tuples(st.sampled_from("0aé😀"), st.integers(0, 200)), min_size=1, max_size=8))
def test_the_letter_of_a_result_above_the_limit_has_the_message(
    kit: Any, monkeypatch: pytest.MonkeyPatch, texts: list[tuple[str, int]]
) -> None:
    monkeypatch.setattr(letter_box, "MAX_VALUE_BYTES", 150)
    app = kit.build(lambda builder: builder.to(wallaroo.computation("same")(lambda text: text)), encoder=long_text)
    stage = Stage(app, kit.stage_of(app, "0/sources/0"))
    messages = [f"{character}{count}" for character, count in texts]
    outputs = stage.run(0, kit.wire([message.encode() for message in messages]))
    lengths = [len(bytes(count) if kind == "0" else (kind * count).encode()) for kind, count in texts]
    assert [len(value) for _, value in kit.sunk(outputs)] == [length for length in lengths if length <= 150]
    found = [
        (each.code, *stage.codec.decode(each.encoding, [len(each.input)], each.input), each.sequence)
        for each in kit.letters(outputs)
    ]
    assert found == [("C525", messages[at], at) for at, length in enumerate(lengths) if length > 150]


@same_functions
@given(pairs=sizes)
def test_a_message_above_the_limit_does_not_cross_a_shuffle(
    kit: Any, monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(letter_box, "MAX_VALUE_BYTES", 150)
    stage = to_shuffle(kit, 1)
    outputs = run_sizes(kit, stage, pairs)
    crossed: list[int] = []
    for output in outputs:
        if output.port != 65535:
            frame = read_frame(output.frame)
            for at, data in enumerate(frame.values()):
                crossed.append(frame.sequence_of(at))
                assert len(data) + len(frame.keys[frame.key_indexes[at]]) <= 150
                key, value = pickle.loads(data)
                assert (len(key), len(value)) == pairs[crossed[-1]]
    costs = [key + len(stage.codec.dump(("k" * key, "v" * value))) for key, value in pairs]
    assert sorted(crossed) == [at for at, cost in enumerate(costs) if cost <= 150]
    found = [each.sequence for each in kit.letters(outputs) if (each.code, each.path) == ("C525", "0/steps/1")]
    assert sorted(found) == [at for at, cost in enumerate(costs) if cost > 150]


def test_above_64_mib_nothing_ends_and_the_rest_goes_on(kit: Any) -> None:
    pairs = [(1, 1), (1, HUGE), (1, 2)]
    outputs = run_sizes(kit, to_sink(kit), pairs)
    assert [len(value) for _, value in kit.sunk(outputs)] == [1, 2]
    (found,) = kit.letters(outputs)
    assert (found.code, found.path, found.sequence) == ("C525", "0/sinks/0", 1)
    assert f"its value has {HUGE} bytes; at most 50331648 are possible; split it" in found.error
    outputs = run_sizes(kit, to_shuffle(kit), [(1, 1), (HUGE, 1), (1, HUGE), (2, 2)])
    value, key = sorted(kit.letters(outputs), key=lambda each: -each.sequence)
    assert (key.code, key.path, value.code, value.path) == ("C525", "0/steps/1", "C525", "0/steps/1")
    assert f"its key has {HUGE} bytes" in key.error
    assert sum(read_frame(output.frame).header.count for output in outputs if output.port != 65535) == 2


def test_many_long_keys_are_cut_into_frames(kit: Any) -> None:
    messages = [f"{MIB + at} 1".encode() for at in range(70)]
    stage = to_shuffle(kit, buckets=1)
    outputs = stage.run(0, kit.wire(messages))
    assert not kit.letters(outputs)
    assert sum(read_frame(output.frame).header.count for output in outputs) == 70


class Pile:
    """A state of as many bytes as its messages say; they are random, so that nothing makes them less."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []


@wallaroo.state_computation("grow")
def grow(data: str, state: Pile) -> tuple[str, bool]:
    persists, _, size = data[1:].partition(" ")
    if size == "0":
        state.parts.clear()
    else:
        state.parts.append(os.urandom(int(size)))
    return str(sum(map(len, state.parts))), persists == "p"


@wallaroo.partition
def first(data: str) -> str:
    return data[0]


@wallaroo.encoder
def plain(data: str) -> str:
    return data


def growing(kit: Any) -> Stage:
    app = kit.build(lambda builder: builder.to_state_partition(grow, Pile, "pile", first), encoder=plain)
    return Stage(app, kit.stage_of(app, "0/steps/0"))


def keyed(messages: list[str]) -> bytes:
    keys = sorted({message[0] for message in messages})
    return encode_frame(
        [message.encode() for message in messages], port=1, encoding=TEXT, keys=[key.encode() for key in keys],
        key_indexes=[keys.index(message[0]) for message in messages], sequences=range(len(messages)),
    )  # fmt: skip


def read(stage: Stage, log: list[bytes], max_bytes: int) -> BucketState:
    state = BucketState(stage.codec, max_bytes)
    state.read(log)
    state.end_log()
    return state


def run(
    stage: Stage, messages: list[str], log: list[bytes], max_bytes: int = MAX_STATE_BYTES, **wishes: Any
) -> BucketResult:
    """Do what the service does."""
    call, committed = pb.Bucket(index=0, bucket=0, **wishes), lambda: read(stage, log, max_bytes)
    return closed_call(stage, call, [keyed(messages)], committed(), committed)[0]


def entries(result: BucketResult) -> list[bytes]:
    return [entry for change in result.changes for entry in change.entries]


def heights(stage: Stage, log: list[bytes]) -> dict[str, list[int]]:
    table = read(stage, log, MAX_STATE_BYTES).table(1)
    return {key.decode(): [len(part) for part in stage.codec.load(cell.data).parts] for key, cell in table.items()}


growths = st.lists(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("ppn"), st.sampled_from([0, 2, 7, 40, 90, 200])),
        min_size=1,
        max_size=6,
    ),
    min_size=1,
    max_size=6,
)


@same_functions
@given(calls=growths, limit=st.integers(120, 400), piece_bytes=st.integers(1, 200), snapshots=st.booleans())
def test_states_in_pieces_and_above_the_limit(
    kit: Any,
    monkeypatch: pytest.MonkeyPatch,
    calls: list[list[tuple[str, str, int]]],
    limit: int,
    piece_bytes: int,
    snapshots: bool,
) -> None:
    """Each call reads its states from the log; messages that would take a state above the limit are dead letters."""
    monkeypatch.setattr(state_piece, "PIECE_BYTES", piece_bytes)
    stage = growing(kit)
    log: list[bytes] = []
    known: dict[str, list[int]] = {}  # what the log has, as the reference
    for call in calls:
        live = {key: list(parts) for key, parts in known.items()}
        safe = dict(live)  # what a failure goes back to: the latest state that could have been written
        expected, dead, saved = [], [], set()
        is_rerun = _exceeds(stage, known, call, limit, set(known) if snapshots else set())
        for at, (key, persists, size) in enumerate(call):
            after = [*live.get(key, []), size] if size else []
            is_kept = key in known or key in saved
            is_large = _bytes(stage, after) > limit
            if is_rerun and is_large and (persists == "p" or is_kept):
                dead.append(at)
                live[key] = safe.get(key, [])
                continue
            live[key] = after
            if not is_large:
                safe[key] = after
            expected.append((at, str(sum(after)).encode()))
            saved |= {key} if persists == "p" else set()
        result = run(stage, [f"{key}{p} {size}" for key, p, size in call], log, limit, wants_snapshot=snapshots)
        assert kit.sunk(result.outputs) == expected
        assert [(each.code, each.sequence) for each in kit.letters(result.outputs)] == [("C525", at) for at in dead]
        changes = entries(result)
        log = changes if snapshots else log + changes
        kept = set(known) | saved if snapshots else saved
        known |= {key: parts for key, parts in live.items() if key in kept}
        assert heights(stage, log) == known
        assert all(len(entry) < 400 + max(piece_bytes, limit) for entry in changes)


def _bytes(stage: Stage, sizes: list[int]) -> int:
    pile = Pile()
    pile.parts = [bytes(size) for size in sizes]
    return len(stage.codec.dump(pile))


def _exceeds(
    stage: Stage, known: dict[str, list[int]], call: list[tuple[str, str, int]], limit: int, saved: set[str]
) -> bool:
    """Say whether the states that the call writes, run at full speed, are too large."""
    live = {key: list(parts) for key, parts in known.items()}
    for key, persists, size in call:
        live[key] = [*live.get(key, []), size] if size else []
        saved |= {key} if persists == "p" else set()
    return any(_bytes(stage, live[key]) > limit for key in saved)


@settings(max_examples=60, deadline=None)
@given(size=st.integers(0, 40), broken=st.integers(0, 9))
def test_pieces_that_are_missing_or_out_of_turn_are_damage(size: int, broken: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_piece, "PIECE_BYTES", 7)
        log = list(state_piece.write_pieces(bytes(range(size)), key=b"k", port=1, encoding=16))
    state = BucketState(ValueCodec(Serializer()))
    state.read(log)
    state.end_log()
    assert [(key, cell.data) for key, cell in state.table(1).items()] == [(b"k", bytes(range(size)))]
    other = encode_frame([b"x"], port=1, encoding=16, keys=[b"o"], key_indexes=[0])
    at = broken % len(log)
    wrongs = (log[:at] + log[at + 1 :], [*log[:at], log[at], *log[at:]], [*log[:1], other, *log[1:]])
    for wrong in wrongs if len(log) > 1 else ():
        with pytest.raises(FrameError):
            _read_all(BucketState(ValueCodec(Serializer())), wrong)


def _read_all(state: BucketState, log: list[bytes]) -> None:
    state.read(log)
    state.end_log()


def test_a_state_above_64_mib_is_written_in_pieces_and_read_back(kit: Any) -> None:
    stage = growing(kit)
    result = run(stage, [f"ap {HUGE}", "bp 3"], [])
    assert [value for _, value in kit.sunk(result.outputs)] == [b"%d" % HUGE, b"3"]
    assert max(sum(map(len, change.entries)) for change in result.changes) < 9 * MIB
    again = run(stage, ["ap 5"], entries(result))
    assert kit.sunk(again.outputs) == [(0, b"%d" % (HUGE + 5))]
