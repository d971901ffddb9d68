"""The built-in codecs against the shared vectors, and what they refuse."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import Int64Value, StringValue

from wallaroo.codec import Codec, codec_of

VECTORS = json.loads(
    (Path(__file__).resolve().parents[3] / "topology-schema" / "vectors" / "codecs.json").read_text(encoding="utf-8")
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
