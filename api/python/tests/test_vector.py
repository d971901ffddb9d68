"""The shared vectors, and the wrong ones that must fail."""

import json
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError

from wallaroo.emit.topology import canonical, interface_hash
from wallaroo.message.frame import (
    FRAMED,
    PLAIN,
    FrameError,
    FrameHeader,
    encode_frame,
    read_frame,
    write_frame,
)
from wallaroo.message.framing import length_of
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.key import bucket_of, key_bytes, key_json
from wallaroo.message.state_piece import Joiner
from wallaroo.worker._proto import record_pb2
from wallaroo.worker.value.kafka_record import read_record, write_record
from wallaroo.worker.value.wire import LineReader

VECTORS = Path(__file__).resolve().parents[3] / "topology-schema" / "vectors"


def read(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def check_canonical(case: dict[str, Any]) -> None:
    text = canonical(case["value"])
    assert text.removesuffix("\n") == case["canonical"].removesuffix("\n")


def check_key(case: dict[str, Any]) -> None:
    ((kind, value),) = case["declared"].items()
    key = bytes.fromhex(value) if kind == "bytes" else value
    assert key_bytes(key).hex() == case["hex"]
    assert key_json(key) == case["document"]
    assert {count: bucket_of(key_bytes(key), int(count)) for count in case["buckets"]} == case["buckets"]


def check_frame(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    frame = read_frame(data)
    header = frame.header
    for field in ("port", "encoding", "count", "flags", "sequence", "timestamp_ms"):
        assert getattr(header, field) == case[field]
    assert [key.hex() for key in frame.keys] == case.get("keys", [])
    assert list(frame.key_indexes) == case.get("key_indexes", [])
    if "sequences" in case:
        assert [frame.sequence_of(index) for index in range(header.count)] == case["sequences"]
    if "timestamps" in case:
        assert [header.timestamp_ms + each for each in frame.timestamps] == case["timestamps"]
    if header.encoding == FRAMED:
        assert frame.data.hex() == "".join(case["values"])
    else:
        values = [None if at in frame.absent else value.hex() for at, value in enumerate(frame.values())]
        assert values == case["values"]
    if case.get("narrow"):
        assert written(case, frame).hex() == case["hex"]


def written(case: dict[str, Any], frame: Any) -> bytes:
    header = frame.header
    if header.encoding == FRAMED and not header.flags:
        return write_frame(
            FrameHeader(header.port, header.count, header.sequence, 0, FRAMED, header.timestamp_ms), [frame.data]
        )
    if header.encoding == FRAMED or (header.flags and not header.count) or (header.flags & 1 and not frame.keys):
        return bytes.fromhex(case["hex"])
    return encode_frame(
        [bytes.fromhex(value or "") for value in case["values"]],
        port=header.port,
        sequence=header.sequence,
        encoding=header.encoding or PLAIN,
        timestamp_ms=header.timestamp_ms,
        keys=frame.keys,
        key_indexes=frame.key_indexes,
        sequences=frame.sequences,
        timestamps=frame.timestamps,
        headers=frame.headers,
        absent=frame.absent,
    )


def check_invalid_frame(case: dict[str, Any]) -> None:
    with pytest.raises(FrameError):
        read_frame(bytes.fromhex(case["hex"]))


def check_hash(case: dict[str, Any]) -> None:
    document = case.get("value") or json.loads((VECTORS / case["document"]).read_text(encoding="utf-8"))
    assert interface_hash(document) == case["interface_hash"]


def check_framing(case: dict[str, Any]) -> None:
    data = bytes.fromhex("".join(case["pieces"]))
    if case["framing"]["kind"] == "newline":
        wire = data + b"\n" if data and not data.endswith(b"\n") else data
        lines, sequences = LineReader().payloads(wire, wire.count(b"\n"), 7, lambda position: True)
        kept = list(takewhile(lambda line: len(line) <= case["max_message_bytes"], lines))
        assert [line.hex() for line in kept] == case["messages"]
        assert (len(kept) == len(lines)) == (case["end"] == "clean")
        assert sequences == list(range(7, 7 + len(lines)))
        return
    length, size = length_of(case["framing"]), int(case["framing"]["kind"].strip("ubel")) // 8
    assert length is not None
    messages, at = [], 0
    while at + size <= len(data):
        payload = length(data[at : at + size])
        if payload > case["max_message_bytes"] or at + size + payload > len(data):
            break
        messages.append(data[at + size : at + size + payload].hex())
        at += size + payload
    assert messages == case["messages"]
    assert (at == len(data)) == (case["end"] == "clean")


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=str(case.get("name") or case.get("declared") or at)) for at, case in enumerate(cases)]


@pytest.mark.parametrize("case", named(read("canonical")["strings"] + read("canonical")["documents"]))
def test_canonical_form(case: dict[str, Any]) -> None:
    check_canonical(case)


@pytest.mark.parametrize("case", named(read("keys")["cases"]))
def test_keys(case: dict[str, Any]) -> None:
    check_key(case)


@pytest.mark.parametrize("case", named(read("frames")["valid"]))
def test_frames(case: dict[str, Any]) -> None:
    check_frame(case)


def joined(entries: list[str]) -> bytes:
    joiner, states = Joiner(), []
    for entry in entries:
        frame = joiner.take(bytes.fromhex(entry))
        states += frame.values() if frame is not None else ()
    joiner.end()
    return states[-1]


@pytest.mark.parametrize("case", named(read("pieces")["valid"]))
def test_pieces(case: dict[str, Any]) -> None:
    assert joined(case["entries"]).hex() == case["state"]


@pytest.mark.parametrize("case", named(read("pieces")["invalid"]))
def test_damaged_pieces(case: dict[str, Any]) -> None:
    with pytest.raises(FrameError):
        joined(case["entries"])


@pytest.mark.parametrize("case", named(read("frames")["invalid"]))
def test_damaged_frames_are_refused(case: dict[str, Any]) -> None:
    check_invalid_frame(case)


@pytest.mark.parametrize("case", named(read("interface_hash")["files"] + read("interface_hash")["documents"]))
def test_interface_hash(case: dict[str, Any]) -> None:
    check_hash(case)


@pytest.mark.parametrize("case", named([case for case in read("framing")["cases"] if "kind" in case["framing"]]))
def test_framing(case: dict[str, Any]) -> None:
    check_framing(case)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("canonical", check_canonical),
        ("keys", check_key),
        ("frames", check_frame),
        ("framing", check_framing),
        ("interface_hash", check_hash),
    ],
)
def test_a_wrong_vector_fails(kind: str, check: Any) -> None:
    for case in read("selftest")[kind]:
        with pytest.raises(AssertionError):
            check(case)


def test_a_sound_frame_among_the_invalid_ones_is_noticed() -> None:
    for case in read("selftest")["invalid_frames"]:
        with pytest.raises(pytest.fail.Exception):
            check_invalid_frame(case)


def run_record(case: dict[str, Any]) -> None:
    """Go both ways."""
    given, data = case["record"], bytes.fromhex(case["hex"])
    headers = tuple((name, None if value is None else bytes.fromhex(value)) for name, value in given["headers"])
    sides = {name: None if given[name] is None else bytes.fromhex(given[name]) for name in ("key", "value")}
    record = KafkaRecord(**{**given, **sides, "headers": headers})
    assert write_record(record) == data
    assert read_record(data) == record


@pytest.mark.parametrize("case", named(read("records")["records"]))
def test_records(case: dict[str, Any]) -> None:
    run_record(case)


@pytest.mark.parametrize("case", named(read("records")["invalid"]))
def test_damaged_records(case: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        read_record(bytes.fromhex(case["hex"]))


@pytest.mark.parametrize("case", read("selftest")["records"], ids=lambda case: case["name"])
def test_wrong_records_fail(case: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        run_record(case)


@pytest.mark.parametrize("case", named(read("records")["states"]))
def test_states_of_groups(case: dict[str, Any]) -> None:
    value = None if case["value"] is None else bytes.fromhex(case["value"])
    joined = {topic: bytes.fromhex(data) for topic, data in case["joined"].items()}
    state = record_pb2.GroupState(value=value, joined=joined)
    assert state.SerializeToString(deterministic=True).hex() == case["hex"]
    assert record_pb2.GroupState.FromString(bytes.fromhex(case["hex"])) == state
