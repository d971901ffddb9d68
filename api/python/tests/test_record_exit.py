"""Results of a Kafka sink's encoder, drawn: records, dead letters, and results without a value."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.message.frame import read_frame
from wallaroo.message.serialization import Serializer
from wallaroo.worker._proto import worker_pb2 as pb
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
RESULTS = st.one_of(USUAL, VALUES, st.tuples(VALUES, KEYS), st.tuples(VALUES, KEYS).map(Pair), st.tuples(VALUES))


def expected(result: Any) -> tuple[bytes, bytes] | str | None:
    """Return the record of a result, else the code of its dead letter, or None if there is no value."""
    value, key = (result, None) if not isinstance(result, tuple) else result if len(result) == 2 else (1, None)
    if value == 1:
        return "C503"
    if value is None:
        return None
    record = (
        value.encode() if isinstance(value, str) else bytes(value),
        key.encode() if isinstance(key, str) else key or b"",
    )
    return record if sum(map(len, record)) <= LIMIT else "C525"


@given(st.lists(RESULTS, min_size=10, max_size=30))
def test_drawn_results_leave_as_records_or_dead_letters(results: list[Any]) -> None:
    box = LetterBox(ValueCodec(Serializer()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letter_box, "MAX_VALUE_BYTES", LIMIT)
        leaving = RecordExit(pb.Node(path="0/sinks/0", port=2), "out", pb.Stage(), box)
        taken = [leaving.put(result, "message", number) for number, result in enumerate(results)]
    frames = [read_frame(output.frame) for output in leaving.outputs(0, 0)]
    found = {
        frame.sequence_of(at): (value, frame.keys[frame.key_indexes[at]])
        for frame in frames
        for at, value in enumerate(frame.values())
    }
    codes = [pb.DeadLetter.FromString(letter).code for letter in box.letters]
    letters = dict(zip(box.sequences, codes, strict=True))
    wanted = dict(enumerate(map(expected, results)))
    assert taken == [each is not None for each in wanted.values()]
    assert found | letters == {number: each for number, each in wanted.items() if each is not None}
