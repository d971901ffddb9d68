"""The vectors of Goka: codecs, partitioners, states; and the wrong ones that must fail."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.goka import Bytes, Codec, GroupState, Int64, Json, String, partition_of
from wallaroo.message.serialization import Serializer
from wallaroo.worker.value.value import PICKLED, ValueCodec

VECTORS = Path(__file__).resolve().parents[3] / "topology-schema" / "vectors"
CODECS: dict[str, Codec] = {"bytes": Bytes(), "string": String(), "int64": Int64()}
Case = dict[str, Any]


def read(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def check_codec(case: Case) -> None:
    codec, data = CODECS[case["codec"]], bytes.fromhex(case["hex"])
    value = bytes.fromhex(case["value"]) if case["codec"] == "bytes" else case["value"]
    assert codec.encode(value) == data
    assert codec.decode(data) == value


def check_partition(case: Case) -> None:
    for partitioner in ("fnv1a", "murmur2"):
        for count, expected in case[partitioner].items():
            assert partition_of(bytes.fromhex(case["key"]), int(count), partitioner) == expected


def check_state(case: Case) -> None:
    value = None if case["value"] is None else bytes.fromhex(case["value"])
    state = GroupState(value, {topic: bytes.fromhex(data) for topic, data in case["joined"].items()})
    assert state.to_bytes().hex() == case["hex"]
    assert GroupState.from_bytes(bytes.fromhex(case["hex"])) == state


def check_table_state(case: Case) -> None:
    load = ValueCodec(Serializer()).loader(PICKLED)
    assert load(bytes.fromhex(case["python"])) == GroupState(bytes.fromhex(case["value"]))


CHECKS = {
    "codecs": check_codec,
    "partitions": check_partition,
    "group_states": check_state,
    "table_states": check_table_state,
}


@pytest.mark.parametrize("kind", CHECKS)
def test_vectors(kind: str) -> None:
    for case in read("goka")[kind]:
        CHECKS[kind](case)


@pytest.mark.parametrize("kind", CHECKS)
def test_a_wrong_vector_fails(kind: str) -> None:
    for case in read("selftest")["goka"][kind]:
        with pytest.raises(AssertionError):
            CHECKS[kind](case)


def test_other_forms_of_an_integer_are_read() -> None:
    for case in read("goka")["read_only"]:
        assert CODECS[case["codec"]].decode(bytes.fromhex(case["hex"])) == case["value"]


def test_what_is_no_integer_is_refused_in_goka_s_words() -> None:
    for case in read("goka")["invalid"]:
        with pytest.raises(ValueError) as caught:
            CODECS[case["codec"]].decode(bytes.fromhex(case["hex"]))
        assert str(caught.value) == case["error"]


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (Bytes(), "a", "DefaultCodec: value to encode is not of type []byte"),
        (String(), b"a", "String: value to encode is not of type string but bytes"),
        (String(), None, "String: value to encode is not of type string but NoneType"),
        (Int64(), 1.0, "Int64: value to encode is not of type int64"),
        (Int64(), True, "Int64: value to encode is not of type int64"),
        (Int64(), 1 << 63, "Int64: value to encode is not of type int64"),
    ],
)
def test_a_value_of_another_type_is_refused_in_goka_s_words(codec: Codec, value: object, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        codec.encode(value)
    assert str(caught.value) == text


@given(st.binary())
def test_text_keeps_any_bytes(data: bytes) -> None:
    assert String().encode(String().decode(data)) == data


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=10))
def test_json_is_read_as_it_was_written(value: object) -> None:
    assert Json().decode(Json().encode(value)) == value


def test_json_writes_what_programs_in_go_read() -> None:
    assert Json().encode({"user": "né", "n": [1, None, True]}) == '{"user":"né","n":[1,null,true]}'.encode()
    assert Json().decode(None) is None
    with pytest.raises(ValueError):
        Json().encode(float("nan"))


@given(st.none() | st.binary(), st.dictionaries(st.text(st.characters(codec="utf-8")), st.binary()))
def test_a_state_is_read_as_it_was_written(value: bytes | None, joined: dict[str, bytes]) -> None:
    assert GroupState.from_bytes(GroupState(value, joined).to_bytes()) == GroupState(value, joined)


def test_an_unknown_partitioner_is_refused() -> None:
    with pytest.raises(ValueError, match="no partition of 8 by 'crc32'; there are fnv1a and murmur2"):
        partition_of("Ann", 8, "crc32")
