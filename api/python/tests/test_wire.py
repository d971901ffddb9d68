"""Wire bytes whose framing only the user's decoder knows."""

from typing import Any

import pytest

import wallaroo
from wallaroo.message.frame import FRAMED, FrameError, FrameHeader, write_frame
from wallaroo.message.serialization import Serializer
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.letter_box import LetterBox, preview
from wallaroo.worker.value.value import ValueCodec
from wallaroo.worker.value.wire import HeaderError, WireReader

BOX = LetterBox(ValueCodec(Serializer()))


class Hundreds:
    """Two digits, in units of two bytes."""

    def header_length(self) -> int:
        return 2

    def payload_length(self, bs: bytes) -> int:
        return 2 * int(bs)

    def decode(self, bs: bytes) -> Any:
        return bs.decode()


def reader(kit: Any) -> WireReader:
    return WireReader(kit.build(decoder=Hundreds()).pipelines[0].sources[0], BOX)


def test_payloads_and_lengths(kit: Any) -> None:
    data = b"01ab00" + b"02abcd"
    assert reader(kit).payloads(data, 3, 7) == ([b"ab", b"", b"abcd"], [7, 8, 9])
    assert reader(kit).split(data + b"03ab", 100) == ([4, 2, 6], 8)
    assert reader(kit).split(data + b"0", 100) == ([4, 2, 6], 0)
    assert reader(kit).split(b"01ab99", 100) == ([4], 200)


def test_a_header_that_the_decoder_fails_on(kit: Any) -> None:
    with pytest.raises(HeaderError, match="payload_length returns .ValueError: .* for header 7878"):
        reader(kit).split(b"xx", 100)
    with pytest.raises(FrameError, match="payload_length returns"):
        reader(kit).payloads(b"xx", 1, 0)
    with pytest.raises(FrameError, match="a wire header of 1 bytes; expected 2"):
        reader(kit).payloads(b"01ab0", 2, 0)


def test_a_stage_over_such_a_source(kit: Any) -> None:
    app = kit.build(decoder=Hundreds())
    frame = write_frame(FrameHeader(0, 2, 0, 0, FRAMED, 5), [b"01ab02abcd"])
    assert kit.sunk(Stage(app, kit.stage_of(app, "0/sources/0")).run(0, frame)) == [(0, b"<ab>"), (1, b"<abcd>")]


@pytest.mark.parametrize(
    "values",
    [
        ["a", "", "b"],
        ["é", "", "日本", "a", "\ud800"],
        [b"a", b"", b"\xff"],
        [1, -5, 1 << 62],
        [1, 1 << 70],
        [1.5, float("inf")],
        [True, False],
        [None, "a", 1, b"x", (1, 2)],
        [{"a": [1]}, ("b",)],
    ],
)
def test_values_come_back_with_their_types(values: list[Any]) -> None:
    codec = ValueCodec(Serializer())
    encoding, lengths, data = codec.encode([codec.freeze(value) for value in values])
    assert sum(lengths) == len(data)
    found = codec.decode(encoding, lengths, data)
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


def test_messages_that_share_an_object_do_not_share_it_afterwards() -> None:
    codec = ValueCodec(Serializer())
    shared = ["x"]
    encoding, lengths, data = codec.encode([codec.freeze(shared), codec.freeze(shared)])
    first, second = codec.decode(encoding, lengths, data)
    assert first == second
    assert first is not second


def test_a_serialize_that_gives_no_bytes() -> None:
    codec = ValueCodec(Serializer(lambda value: "text", lambda data: data, True))  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="serialize returned str; expected bytes"):
        codec.dump(1)


def test_an_encoding_of_another_worker() -> None:
    with pytest.raises(FrameError, match="values have encoding 40, which this worker did not write"):
        ValueCodec(Serializer()).decode(40, [1], b"x")


def test_a_preview_is_short_and_never_fails() -> None:
    class Odd:
        def __repr__(self) -> str:
            msg = "no"
            raise ValueError(msg)

    class Order:
        def __init__(self) -> None:
            self.user, self.calls = "ann", [len, lambda: 0]

    order = 'Order {"user": "ann", "calls": ["<built-in function len>", "<function '
    assert preview(Order()).startswith(order)
    assert preview([Order()]).startswith('list [{"user": "ann", ')
    assert "0x" not in preview([Order()])
    assert preview("<Order at 0x7f00>") == "'<Order at 0x7f00>'"
    assert preview(Odd()) == "<Odd whose repr fails: ValueError>"
    assert len(preview("x" * 10_000_000)) == 200
    assert wallaroo.deserialize(wallaroo.serialize({"a": 1})) == {"a": 1}
