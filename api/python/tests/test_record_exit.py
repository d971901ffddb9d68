"""Results of a Kafka sink's encoder, drawn: records, dead letters, and results without a value."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.message.frame import read_frame
from wallaroo.message.serialization import Serializer
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.chain import ChainWriter, Link
from wallaroo.worker.stage.record import RecordExit
from wallaroo.worker.value import letter_box
from wallaroo.worker.value.letter_box import LetterBox
from wallaroo.worker.value.value import ValueCodec

LIMIT = 3


class Pair(tuple[Any, ...]):
    """A tuple of a user's class, which takes the same way as a plain one."""

    __slots__ = ()


VALUES = st.one_of(st.none(), st.just(1), st.text("ä", max_size=5), st.binary(max_size=9).flatmap(
    lambda data: st.sampled_from([data, bytearray(data), memoryview(data)])
))  # fmt: skip
KEYS = st.one_of(st.none(), st.text("k", max_size=5), st.binary(max_size=5))
USUAL = st.tuples(st.binary(max_size=3), st.binary(max_size=3))
PLACED = st.tuples(st.binary(max_size=2), st.binary(max_size=1), st.integers(0, 70_000))
RESULTS = st.one_of(
    USUAL, VALUES, st.tuples(VALUES, KEYS), st.tuples(VALUES, KEYS).map(Pair), st.tuples(VALUES), PLACED
)  # fmt: skip


def expected(result: Any) -> tuple[bytes, bytes, bytes] | str | None:
    """Return value, key and headers of a result's record, else the code of its dead letter, or None without a value."""
    headers = b""
    if isinstance(result, tuple) and len(result) == 3:
        headers = b"\t\0partition\4\0\0\0" + result[2].to_bytes(4, "little")
        result = result[:2]
    value, key = (result, None) if not isinstance(result, tuple) else result if len(result) == 2 else (1, None)
    if value == 1:
        return "C503"
    if value is None:
        return None
    value = value.encode() if isinstance(value, str) else bytes(value)
    key = key.encode() if isinstance(key, str) else key or b""
    return (value, key, headers) if len(value) + len(key) <= LIMIT else "C525"


def looped(leaving: RecordExit, sequences: list[int], results: list[Any]) -> int:
    """Write results in a stage's loop, and return how many it counts as dropped."""
    loops = ChainWriter(
        [Link(pb.NODE_KIND_SOURCE, readers=[1]), Link(pb.NODE_KIND_SINK, is_record=True, input_count=1)],
        is_custom=False,
    )
    dropped = [0, 0]
    names: dict[str, Any] = {
        "f0": results.__getitem__,
        "f1": lambda result: result,
        "FIT": frozenset(),
        "is_promise": lambda result: False,
        "dropped": dropped,
        "put1": leaving.values.append,
        "key1": leaving.keys.append,
        "mark1": leaving.sequences.append,
        "short1": leaving.short,
        "record1": leaving.put,
    }
    exec(loops.source(), names)
    count = len(results)
    names["run0"](range(count), sequences, range(count), [0, 0])
    return sum(dropped)


@given(st.lists(RESULTS, min_size=10, max_size=30), st.randoms(use_true_random=False))
def test_drawn_results_leave_as_records_or_dead_letters(results: list[Any], draw: random.Random) -> None:
    box = LetterBox(ValueCodec(Serializer()))
    sequences = draw.sample(range(1000), len(results))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letter_box, "MAX_VALUE_BYTES", LIMIT)
        leaving = RecordExit(pb.Node(path="0/sinks/0", port=2), "out", pb.Stage(), box)
        dropped = looped(leaving, sequences, results)
    leaving.order()
    frames = [read_frame(output.frame) for output in leaving.outputs(0, 0)]
    written = [
        (frame.sequence_of(at), (value, frame.keys[frame.key_indexes[at]], frame.headers[at] if frame.headers else b""))
        for frame in frames
        for at, value in enumerate(frame.values())
    ]
    codes = [pb.DeadLetter.FromString(letter).code for letter in box.letters]
    letters = list(zip(box.sequences, codes, strict=True))
    wanted = {number: expected(result) for number, result in zip(sequences, results, strict=True)}
    assert dropped == list(wanted.values()).count(None)
    assert [number for number, _ in written] == sorted(number for number, _ in written)
    assert dict([*written, *letters]) == {number: each for number, each in wanted.items() if each is not None}
    assert len(written) + len(letters) + dropped == len(results)
