"""The vectors that no SDK runs: framing against the gateway's cutter, codecs against Python's and protobuf's libraries.

Each runner runs the wrong cases of selftest.json too, and must fail on them.
"""

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import Int64Value, StringValue

from wallaroo_runtime.gateway.framing import fixed_cutter, length_packer

VECTORS = Path(__file__).resolve().parent.parent / "topology-schema" / "vectors"
MESSAGES = {f"protobuf:{message.DESCRIPTOR.full_name}": message for message in (Int64Value, StringValue, Struct)}
Vector = dict[str, Any]


def read(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def run_framing(vector: Vector) -> None:
    """Feed the pieces one by one, as a connection does."""
    kind = vector["framing"]["kind"]
    if kind == "newline":
        run_lines(vector)
        return
    cutter, header = fixed_cutter(kind, vector["max_message_bytes"]), length_packer(kind)
    pending, messages, too_large = b"", [], 0
    for piece in map(bytes.fromhex, vector["pieces"]):
        pending += piece
        cut = cutter(pending, len(pending))
        at = 0
        for _ in range(cut.count):
            end = at + header.size + header.unpack_from(pending, at)[0]
            messages.append(pending[at + header.size : end].hex())
            at = end
        assert at == cut.end
        pending, too_large = pending[at:], cut.too_large
        if too_large:
            break
    assert messages == vector["messages"]
    assert ("too_large" if too_large else "cut" if pending else "clean") == vector["end"]
    assert too_large == vector.get("announced_bytes", 0)
    if vector["end"] == "cut":
        assert len(pending) == vector["received_bytes"]


def run_lines(vector: Vector) -> None:
    """Feed the pieces as `run_framing` does; the end of the stream ends the last line."""
    cutter = fixed_cutter("newline", vector["max_message_bytes"])
    pending, messages, too_large = b"", [], 0
    for piece in map(bytes.fromhex, vector["pieces"]):
        pending += piece
        cut = cutter(pending, len(pending))
        whole, pending, too_large = pending[: cut.end], pending[cut.end :], cut.too_large
        messages += whole.split(b"\n")[:-1]
        assert whole.count(b"\n") == cut.count
        if too_large:
            break
    if pending and not too_large:
        messages.append(pending)
    assert [message.removesuffix(b"\r").hex() for message in messages] == vector["messages"]
    assert ("too_large" if too_large else "clean") == vector["end"]


def decoded(codec: str, data: bytes) -> Any:
    if codec == "bytes":
        return data.hex()
    if codec == "string":
        return data.decode("utf-8")
    if codec == "int64":
        return struct.unpack(">q", data)[0]
    if codec == "float64":
        return struct.unpack(">d", data)[0]
    if codec in MESSAGES:
        return json.loads(json_format.MessageToJson(MESSAGES[codec].FromString(data)))
    value = json.loads(data.decode("utf-8"), parse_constant=refuse, parse_float=lambda text: finite(float(text)))
    json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair has no UTF-8
    return value


def finite(number: float) -> float:
    if math.isinf(number):
        raise ValueError
    return number


def refuse(name: str) -> None:
    raise ValueError(name)


def encoded(codec: str, value: Any) -> bytes:
    if codec == "bytes":
        return bytes.fromhex(value)
    if codec == "string":
        return str(value).encode()
    if codec == "int64":
        return struct.pack(">q", value)
    if codec == "float64":
        return struct.pack(">d", float(value))
    if codec in MESSAGES:
        return json_format.Parse(json.dumps(value), MESSAGES[codec]()).SerializeToString(deterministic=True)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


def run_codec(vector: Vector) -> None:
    """Go both ways."""
    codec, value, data = vector["codec"], vector["value"], bytes.fromhex(vector["hex"])
    assert encoded(codec, value) == data
    found = decoded(codec, data)
    if codec != "float64":
        assert found == value
        return
    number = float(value)
    assert (
        math.isnan(found)
        if math.isnan(number)
        else (found, math.copysign(1, found))
        == (
            number,
            math.copysign(1, number),
        )
    )


@pytest.mark.parametrize("vector", read("framing.json")["cases"], ids=lambda vector: vector["name"])
def test_framing(vector: Vector) -> None:
    run_framing(vector)


@pytest.mark.parametrize("vector", read("codecs.json")["cases"], ids=lambda v: f"{v['codec']} {v['hex'][:20]}")
def test_codec(vector: Vector) -> None:
    run_codec(vector)


@pytest.mark.parametrize("vector", read("codecs.json")["kept"], ids=lambda v: f"{v['codec']} {v['hex'][:20]}")
def test_unknown_fields_are_kept(vector: Vector) -> None:
    message = MESSAGES[vector["codec"]].FromString(bytes.fromhex(vector["hex"]))
    assert message.SerializeToString(deterministic=True).hex() == vector["hex"]


@pytest.mark.parametrize("vector", read("codecs.json")["invalid"], ids=lambda v: f"{v['codec']} {v['hex'][:20]}")
def test_invalid_bytes_do_not_decode(vector: Vector) -> None:
    with pytest.raises((ValueError, struct.error, DecodeError)):
        decoded(vector["codec"], bytes.fromhex(vector["hex"]))


def test_the_first_framing_vector_is_the_readme_s_example() -> None:
    first = read("framing.json")["cases"][0]
    wire = bytes.fromhex("".join(first["pieces"]))
    assert wire == b"\x00\x00\x00\x2cMy solitude is cheered by that elegant hope."


@pytest.mark.parametrize(("kind", "runner"), [("framing", run_framing), ("codecs", run_codec)])
def test_the_wrong_vector_fails(kind: str, runner: Any) -> None:
    for vector in read("selftest.json")[kind]:
        with pytest.raises(AssertionError):
            runner(vector)
