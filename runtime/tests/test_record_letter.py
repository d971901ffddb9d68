"""Dead letters of Kafka's records: the place of the record is in them and shown, in both modes."""

import json
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.manifest import put_manifest
from wallaroo.message.frame import FrameHeader, encode_frame, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.dead_letter import FOLDER
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway import kafka_reader
from wallaroo_runtime.gateway.kafka_reader import FrameRecords
from wallaroo_runtime.gateway.source_progress import POINT_HEADER
from wallaroo_runtime.maintenance.replay import read_marks
from wallaroo_runtime.service._proto import service_pb2
from wallaroo_runtime.spark.letter_watch import Notable
from wallaroo_runtime.topology.dead_letter_text import record_place
from wallaroo_runtime.topology.error_policy import ErrorPolicy, stop_at_dead_letter
from wallaroo_runtime.topology.model import KafkaSource

SOURCE, STEP = "0/sources/0", "0/steps/0"
LETTERS = 65535
VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
CLICKS = KafkaSource(
    path=SOURCE, name="clicks", kind="kafka", codec="native", worker="main", max_message_bytes=1000, topic="web",
    brokers=("b:1",), start="start", options={},
)  # fmt: skip


def letter(sequence: int, path: str = SOURCE, data: bytes = b"x") -> pb.DeadLetter:
    return pb.DeadLetter(code="C501", path=path, step="in", sequence=sequence, input=data, error="it failed")


def output(letters: list[pb.DeadLetter]) -> pb.Output:
    sequences = [each.sequence for each in letters]
    values, first = [each.SerializeToString() for each in letters], min(sequences)
    offsets = [sequence - first for sequence in sequences]
    frame = encode_frame(values, port=LETTERS, sequence=first, timestamp_ms=9, sequences=offsets)
    return pb.Output(port=LETTERS, bucket=-1, frame=frame)


def letters_of(frame: bytes) -> list[pb.DeadLetter]:
    return [pb.DeadLetter.FromString(value) for value in read_frame(frame).values()]


def place(partition: int, offset: int, key: bytes | None) -> pb.Origin:
    return pb.Origin(source="clicks", topic="web", partition=partition, offset=offset, key=(key or b"")[:200])


@dataclass(frozen=True)
class Record:
    """What a consumer gives."""

    at: tuple[int, int]
    own: tuple[tuple[str, bytes], ...]
    its_key: bytes | None = b"k"
    its_value: bytes | None = b"v"

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]

    def key(self) -> bytes | None:
        return self.its_key

    def value(self) -> bytes | None:
        return self.its_value

    def timestamp(self) -> tuple[int, int]:
        return 1, 5

    def headers(self) -> list[tuple[str, bytes]]:
        return list(self.own)


arrivals = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 1, 1, 4])), min_size=1, max_size=20)
own = st.sampled_from([(), (("via", b"web"),), ((POINT_HEADER.decode(), bytes(16)),)])


@given(arrivals, st.data())
def test_a_frame_of_the_gateway_says_which_record_each_message_is(
    drawn: list[tuple[int, int]], data: st.DataObject
) -> None:
    offsets, sent, records = [0, 0, 0], [], []
    for partition, step in drawn:
        offsets[partition] += step
        sent.append((partition, offsets[partition]))
        records.append(Record(sent[-1], data.draw(own)))
    (read,) = FrameRecords(service_pb2.KafkaSource(max_message_bytes=100), records).frames()
    headers = read_frame(write_frame(FrameHeader(1, read.count, 0, read.flags), read.parts)).headers
    found = []
    for index in range(len(sent)):
        at = next(each for each in range(index, len(sent)) if POINT_HEADER in headers[each])
        point = headers[at][-16:]
        partition, end = int.from_bytes(point[:8], "big"), int.from_bytes(point[8:], "big")
        found.append((partition, end - 1 - (at - index)))
    assert found == sent
    assert read.points == {(0, partition): offset + 1 for partition, offset in sent}
    runs = sum(a != (b[0], b[1] - 1) for a, b in zip(sent, sent[1:], strict=False)) + 1
    assert sum(header.count(POINT_HEADER) for header in headers) == runs, "one for each run, and none from outside"


@given(st.none() | st.binary(max_size=300), st.none() | st.text("aé𝄞", max_size=120), st.integers(0, 200))
def test_key_and_headers_count_for_the_size_of_a_record(key: bytes | None, text: str | None, size: int) -> None:
    """Else a frame would have more than 64 MiB, which ends the gateway with no word on the record."""
    config = service_pb2.KafkaSource(port=3, path=SOURCE, name="clicks", topic="web", max_message_bytes=200)
    value = None if text is None else text.encode()
    record = Record((2, 7), (("h", bytes(size)),), key, value)
    whole = len(key or b"") + len(value or b"") + 6 + len("h") + size
    (refused,) = FrameRecords(config, [record]).frames()
    assert refused.points == {(3, 2): 8}
    if whole <= 200:
        assert refused.port == 3
        return
    (found,) = letters_of(write_frame(FrameHeader(refused.port, 1, 5, refused.flags), refused.parts))
    error = f"a record of {whole} bytes; at most 200 are taken"
    preview = (value or b"")[:80].decode(errors="ignore")  # only whole characters, as in micro-batches
    assert found == pb.DeadLetter(
        code="R606", path=SOURCE, step="clicks", port=3, sequence=7, timestamp_ms=5, error=error, preview=preview,
        origin=place(2, 7, key),
    )  # fmt: skip


@given(
    sizes=st.lists(st.sampled_from([0, 1, 30, 99, 100, 101, 150]), min_size=1, max_size=40),
    frame_bytes=st.sampled_from([1, 200, 1000]),
    frame_messages=st.integers(1, 8),
)
def test_frames_have_the_records_in_order_and_large_ones_as_letters(
    sizes: list[int], frame_bytes: int, frame_messages: int
) -> None:
    config = service_pb2.KafkaSource(port=3, path=SOURCE, name="clicks", topic="web", max_message_bytes=100)
    records = [Record((0, offset), (), None, bytes([offset]) * size) for offset, size in enumerate(sizes)]
    limits = {"FRAME_BYTES": frame_bytes, "FRAME_MESSAGES": frame_messages}
    with mock.patch.multiple(kafka_reader, **limits):
        frames = [*FrameRecords(config, records).frames()]
    reached, found = 0, list[tuple[int, int]]()
    for frame in frames:
        data = write_frame(FrameHeader(frame.port, frame.count, 0, frame.flags), frame.parts)
        if frame.port == 3:
            assert frame.count <= frame_messages
            assert sum(sizes[reached : reached + frame.count - 1]) < frame_bytes, "full before its last record"
            found += [(reached + at, len(value)) for at, value in enumerate(read_frame(data).values())]
        else:
            (letter,) = letters_of(data)
            found.append((letter.origin.offset, sizes[letter.origin.offset]))
            assert sizes[letter.origin.offset] > 100
        reached += frame.count
        assert frame.points == {(3, 0): reached}
    assert found == [*enumerate(sizes)]


def test_a_place_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    put_manifest(tmp_path)
    letters = [letter(13), letter(13), letter(13)]
    letters[0].origin.CopyFrom(place(0, 13, b"ann"))
    letters[1].origin.CopyFrom(place(2, 13, None))
    (folder / "q-1-0.frames").write_bytes(output(letters).frame)
    said = [
        "source \"clicks\", topic web, partition 0, offset 13, key 'ann'",
        'source "clicks", topic web, partition 2, offset 13',
    ]
    for number, words in enumerate(said):
        assert main(["dead-letters", "show", str(tmp_path), f"1-0-{number}"]) == 0
        assert f"record    {words}\n" in capsys.readouterr().out
        assert f"C501 it failed ({words})" in str(Notable(1, False, "1-0-0", letters[number]).finding("show"))
        with pytest.raises(RunError) as caught:
            stop_at_dead_letter(letters[number:], ErrorPolicy(fails=True))
        assert f"R611 the query stopped; C501 it failed ({words})\n" in str(caught.value)
    assert main(["dead-letters", "show", str(tmp_path), "1-0-2"]) == 0
    assert "record" not in capsys.readouterr().out and record_place(letters[2]) == {}
    assert main(["dead-letters", "ls", "--json", str(tmp_path)]) == 0
    listed = [json.loads(line)["record"] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(map(record_place, letters))
    assert listed[0] == {"source": "clicks", "topic": "web", "partition": 0, "offset": 13, "key": "ann"}


@pytest.mark.parametrize(
    ("key", "data", "reason"),
    [
        (b"a" * 200, b"3", "the key of its record was too long to be kept"),
        (b"ann", b"", "its record has no value, or one that was too long to be kept"),
        (None, b"3", ""),
    ],
)
def test_a_record_that_is_not_known_or_a_broker_that_does_not_answer_leaves_a_letter_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: bytes | None, data: bytes, reason: str
) -> None:
    document = json.loads((VALID / "every_kind.json").read_bytes())
    sources = {each["path"]: each for line in document["pipelines"] for each in line["sources"]}
    path = next(path for path, source in sources.items() if source["kind"] == "kafka")
    sources[path] |= {"brokers": ["127.0.0.1:1"], "options": {}}
    put_manifest(tmp_path, document)
    made = letter(7, path, data)
    made.port = read_manifest(tmp_path).ports.parts[path]
    made.origin.CopyFrom(place(0, 7, key))
    folder = tmp_path / FOLDER
    folder.mkdir()
    frame = encode_frame([made.SerializeToString()], port=LETTERS)
    (folder / "0b9a1f60-1111-2222-3333-444455556666-3-0.frames").write_bytes(frame)
    assert main(["dead-letters", "replay", str(tmp_path), "3-0-0"]) != 0
    name = sources[path]["name"]
    unanswered = f'R672 source "{name}": no answer from Kafka at 127.0.0.1:1; Connection refused\n'
    told = capsys.readouterr().err
    assert (f"; {reason}\n" if reason else unanswered) in told
    assert ("send its message again, in parts if it is large;" in told) == (reason != "" and not data), told
    assert [*read_marks(tmp_path)] == []
