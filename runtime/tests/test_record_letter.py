"""Dead letters of whole records of Kafka: the record's place is shown, and none where there is no record."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.dead_letter import FOLDER
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.kafka.frame import whole_value
from wallaroo_runtime.kafka.letter import record_place
from wallaroo_runtime.spark.letter_watch import Notable

SOURCE, STEP = "0/sources/0", "0/steps/0"


def letter(data: bytes, sequence: int, path: str = SOURCE) -> pb.DeadLetter:
    return pb.DeadLetter(code="C501", path=path, step="in", sequence=sequence, input=data, error="it failed")


@given(st.text("ab.-", min_size=1), st.integers(0, 2**31 - 1), st.integers(0, 2**62), st.none() | st.binary())
def test_the_place_of_a_record_is_that_of_its_letter(
    topic: str, partition: int, offset: int, key: bytes | None
) -> None:
    data = whole_value(topic, partition, offset, key=key, value=b"\xff", timestamp_ms=5, headers=[("h", None)])
    place = record_place(letter(data, offset))
    assert (place["topic"], place["partition"], place["offset"]) == (topic, partition, offset)
    assert (place["key"] == "none") == (key is None)
    assert record_place(letter(data, offset + 1)) == record_place(letter(data, offset, STEP)) == {}


@given(st.binary())
def test_other_payloads_have_none(data: bytes) -> None:
    assert record_place(letter(data, 13)) == {}


def test_two_records_at_one_offset_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (tmp_path / "application.json").write_text('{"name": "a"}')
    letters = [
        letter(whole_value("orders", part, 13, key=b"ann", value=b"x", timestamp_ms=5, headers=[]), 13)
        for part in (0, 2)
    ]
    frame = encode_frame([each.SerializeToString() for each in letters], port=65535)
    (folder / "q-1-0.frames").write_bytes(frame)
    for number, part in enumerate((0, 2)):
        assert main(["dead-letters", "show", str(tmp_path), f"1-0-{number}"]) == 0
        said = capsys.readouterr().out
        assert f"record    topic orders, partition {part}, offset 13, key " in said and "ann" in said
        assert f"partition {part}, offset 13" in str(Notable(1, False, "1-0-0", letters[number]).finding("show"))
