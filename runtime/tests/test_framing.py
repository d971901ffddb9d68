"""Cutting a byte stream into messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.gateway.framing import LENGTH_KINDS, Cut, fixed_cutter, length_packer, splitter_cut


def framed(kind: str, payloads: list[bytes]) -> bytes:
    packer = length_packer(kind)
    return b"".join(packer.pack(len(payload)) + payload for payload in payloads)


@given(st.sampled_from(LENGTH_KINDS), st.lists(st.binary(max_size=255), max_size=20), st.data())
def test_every_whole_message_is_found_wherever_the_bytes_end(
    kind: str, payloads: list[bytes], data: st.DataObject
) -> None:
    width = length_packer(kind).size
    stream = framed(kind, payloads)
    size = data.draw(st.integers(0, len(stream)))
    cut = fixed_cutter(kind, 255)(stream + b"\xff" * 9, size)
    ends = [0]
    for payload in payloads:
        ends.append(ends[-1] + width + len(payload))
    whole = [end for end in ends if end <= size]
    assert (cut.count, cut.end, cut.too_large) == (len(whole) - 1, whole[-1], 0)
    left = size - cut.end
    if left < width:
        assert cut.wanted == 0
    else:
        assert cut.wanted == width + len(payloads[cut.count])


@pytest.mark.parametrize("kind", LENGTH_KINDS)
def test_an_announcement_of_too_much_is_found_before_its_payload(kind: str) -> None:
    stream = framed(kind, [b"ok"]) + length_packer(kind).pack(101)
    assert fixed_cutter(kind, 100)(stream, len(stream)) == Cut(1, length_packer(kind).size + 2, too_large=101)
    assert fixed_cutter(kind, 101)(stream, len(stream)).too_large == 0


def test_the_first_vector() -> None:
    stream = b"\x00\x00\x00\x2cMy solitude is cheered by that elegant hope."
    assert fixed_cutter("u32be", 1 << 24)(stream, len(stream)) == Cut(1, 48)


class Answer:
    def __init__(self, lengths: list[int], wanted: int) -> None:
        self.lengths, self.wanted = lengths, wanted

    def split(self, data: bytes) -> tuple[list[int], int]:
        return self.lengths, self.wanted


@pytest.mark.parametrize(
    ("lengths", "wanted", "expected"),
    [
        ([4, 4], 0, Cut(2, 8)),
        ([4], 50, Cut(1, 4, 50)),
        ([4, 6], 0, Cut(2, 10)),
        ([], 105, Cut(0, 0, too_large=101)),
    ],
)
def test_a_splitter_is_believed(lengths: list[int], wanted: int, expected: Cut) -> None:
    assert splitter_cut(Answer(lengths, wanted), bytes(10), 4, 100) == expected


@pytest.mark.parametrize(("lengths", "wanted"), [([11], 0), ([3], 0), ([], 10), ([4], 5)])
def test_a_splitter_that_contradicts_the_data_is_not(lengths: list[int], wanted: int) -> None:
    with pytest.raises(ValueError, match=r"messages? of"):
        splitter_cut(Answer(lengths, wanted), bytes(10), 4, 100)


def test_a_splitter_that_never_finds_a_message_meets_the_limit() -> None:
    assert splitter_cut(Answer([], 0), bytes(104), 4, 100).too_large == 100
