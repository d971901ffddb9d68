"""The built-in codecs against the shared vectors, and what they refuse."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from wallaroo.codec import CODECS

VECTORS = json.loads(
    (Path(__file__).resolve().parents[3] / "topology-schema" / "vectors" / "codecs.json").read_text(encoding="utf-8")
)


def message(case: dict[str, Any]) -> Any:
    if case["codec"] == "bytes":
        return bytes.fromhex(case["value"])
    return float(case["value"]) if case["codec"] == "float64" else case["value"]


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: f"{case['codec']}-{str(case['value'])[:20]}")
def test_vectors(case: dict[str, Any]) -> None:
    codec, value = CODECS[case["codec"]], message(case)
    assert codec.encode(value).hex() == case["hex"]
    read = codec.decode(bytes.fromhex(case["hex"]))
    assert read == value or (math.isnan(read) and math.isnan(value))


@pytest.mark.parametrize("case", VECTORS["invalid"], ids=lambda case: f"{case['codec']}-{case['hex'] or 'empty'}")
def test_bytes_of_another_codec_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        CODECS[case["codec"]].decode(bytes.fromhex(case["hex"]))


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("bytes", "a", "the message is str; expected bytes"),
        ("string", b"a", "the message is bytes; expected str"),
        ("int64", True, "the message is bool; expected int"),
        ("int64", 1 << 63, "9223372036854775808 is not between -2**63 and 2**63-1"),
        ("float64", "1", "the message is str; expected float"),
        ("json", float("nan"), "Out of range float values are not JSON compliant"),
        ("json", {1, 2}, "Object of type set is not JSON serializable"),
    ],
)
def test_messages_of_another_type_are_refused(name: str, value: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        CODECS[name].encode(value)
    assert str(caught.value).startswith(text)
