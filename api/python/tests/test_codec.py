"""The built-in codecs against the shared vectors, and what they refuse."""

import enum
import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import Int64Value, StringValue
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.message.codec import Codec, codec_of

VECTORS = json.loads(
    (Path(__file__).resolve().parents[3] / "topology-schema" / "vectors" / "codecs.json").read_text(encoding="utf-8")
)


class Whole(enum.IntEnum):
    THREE = 3


class Exact(float):
    def __repr__(self) -> str:
        return "Exact"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)
MESSAGES = {f"protobuf:{message.DESCRIPTOR.full_name}": message for message in (Int64Value, StringValue, Struct)}


def codec(name: str) -> Codec:
    found = codec_of(name)
    assert found is not None and found.name == name
    return found


def message(case: dict[str, Any]) -> Any:
    if case["codec"] == "bytes":
        return bytes.fromhex(case["value"])
    if case["codec"] in MESSAGES:
        return json_format.Parse(json.dumps(case["value"]), MESSAGES[case["codec"]]())
    return float(case["value"]) if case["codec"] == "float64" else case["value"]


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: f"{case['codec']}-{str(case['value'])[:20]}")
def test_vectors(case: dict[str, Any]) -> None:
    form, value = codec(case["codec"]), message(case)
    assert form.encode(value).hex() == case["hex"]
    read = form.decode(bytes.fromhex(case["hex"]))
    assert read == value or (math.isnan(read) and math.isnan(value))


def test_numbers_of_json_have_one_form() -> None:
    for case in VECTORS["json_numbers"]:
        (number,) = struct.unpack(">d", bytes.fromhex(case["bits"]))
        assert codec("json").encode(number).decode() == case["text"]
        assert codec("json").encode({"a": [number]}).decode() == f'{{"a":[{case["text"]}]}}'
        assert float(codec("json").decode(case["text"].encode())) == number


BIG = st.builds(lambda bits, more: (1 << bits) + more, st.integers(50, 1100), st.integers(-3, 3))


@given(st.integers() | BIG)
def test_an_integer_is_a_float_only_where_it_is_the_same_number(number: int) -> None:
    try:
        is_exact = int(float(number)) == number
    except OverflowError:
        is_exact = False
    for value in (number, -number):
        if is_exact:
            assert codec("float64").decode(codec("float64").encode(value)) == value
        else:
            with pytest.raises(ValueError, match="is no float of 64 bits; the nearest one is another number"):
                codec("float64").encode(value)


def is_same(value: Any, read: Any) -> bool:
    """Return whether a value was read back; a float of many digits comes as an integer that is that float."""
    if isinstance(value, float):
        return float(read) == value
    if isinstance(value, list):
        return len(value) == len(read) and all(map(is_same, value, read))
    if isinstance(value, dict):
        return value.keys() == read.keys() and all(is_same(item, read[key]) for key, item in value.items())
    return type(value) is type(read) and value == read


@given(JSON)
def test_json_is_read_back_and_written_the_same(value: Any) -> None:
    data = codec("json").encode(value)
    assert is_same(value, codec("json").decode(data))
    assert codec("json").encode(codec("json").decode(data)) == data


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({10: 1.5, 9: 2}, '{"10":1.5,"9":2}'),
        ({1.0: "a"}, '{"1":"a"}'),
        ({True: 1.0, False: None}, '{"false":null,"true":1}'),
        ((1.0, "1.0", '9":'), '[1,"1.0","9\\":"]'),
        ([-0.0, 1e21, 1e-7, 2**53 + 1], "[0,1e+21,1e-7,9007199254740993]"),
        (Whole(3), "3"),
        ({"a": Exact(3.0)}, '{"a":3}'),
    ],
)
def test_other_keys_and_types_in_json(value: Any, text: str) -> None:
    assert codec("json").encode(value).decode() == text


def test_keys_of_two_types_are_refused() -> None:
    with pytest.raises(TypeError, match="not supported between"):
        codec("json").encode({2: 0, "2": 1})


@pytest.mark.parametrize("case", VECTORS["kept"], ids=lambda case: case["codec"])
def test_what_a_program_does_not_know_is_kept(case: dict[str, Any]) -> None:
    form = codec(case["codec"])
    assert form.encode(form.decode(bytes.fromhex(case["hex"]))).hex() == case["hex"]


@pytest.mark.parametrize("case", VECTORS["invalid"], ids=lambda case: f"{case['codec']}-{case['hex'] or 'empty'}")
def test_bytes_of_another_codec_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        codec(case["codec"]).decode(bytes.fromhex(case["hex"]))


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("bytes", "a", "the message is str; expected bytes"),
        ("string", b"a", "the message is bytes; expected str"),
        ("int64", True, "the message is bool; expected int"),
        ("int64", 1 << 63, "9223372036854775808 is not between -2**63 and 2**63-1"),
        ("float64", "1", "the message is str; expected float"),
        ("json", float("nan"), "Out of range float values are not JSON compliant"),
        (
            "protobuf:google.protobuf.Struct",
            StringValue(),
            "the message is StringValue; expected google.protobuf.Struct",
        ),
        ("protobuf:google.protobuf.Struct", {"a": 1}, "the message is dict; expected google.protobuf.Struct"),
        ("json", {1, 2}, "Object of type set is not JSON serializable"),
    ],
)
def test_messages_of_another_type_are_refused(name: str, value: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        codec(name).encode(value)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    "name", ["protobuf:shop.v1.Order", "protobuf:google.protobuf.NullValue", "protobuf:", "protobuf:a\0", "xml"]
)
def test_names_of_no_codec(name: str) -> None:
    assert codec_of(name) is None


UNITS = st.lists(st.sampled_from([0x61, 0x5C, 0x22, 0xD7FF, 0xD800, 0xD83D, 0xDBFF, 0xDC00, 0xDE00, 0xDFFF, 0xE000]))


@given(UNITS, st.booleans(), st.booleans())
def test_a_json_text_with_half_of_a_surrogate_pair_is_refused(
    units: list[int], is_escaped: bool, is_name: bool
) -> None:
    def written(unit: int) -> str:
        is_half = 0xD800 <= unit < 0xE000
        return f"\\u{unit:04x}" if is_half or is_escaped else json.dumps(chr(unit))[1:-1]

    text = '"' + "".join(map(written, units)) + '"'
    data = (f'[{{{text}:1}}, "\\\\ud800"]' if is_name else text).encode()
    codec = codec_of("json")
    assert codec is not None
    try:
        expected = struct.pack(f"<{len(units)}H", *units).decode("utf-16-le")
    except UnicodeDecodeError:
        with pytest.raises(ValueError, match="a text has a lone surrogate"):
            codec.decode(data)
        return
    assert codec.decode(data) == ([{expected: 1}, "\\ud800"] if is_name else expected)
