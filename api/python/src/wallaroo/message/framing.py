"""Finds the framing of a user's decoder, by calls with test headers: they show how it reads the payload's length."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

WIDTHS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
PROBE_COUNT = 64
NEWLINE = "newline"


def probe_headers(width: int) -> Iterator[bytes]:
    """Yield test headers. A big-endian, a little-endian and any other decoder read different lengths from them."""
    yield bytes(width)
    yield b"\xff" * width
    for position in range(width):
        for value in (0x01, 0x80):
            yield bytes(value if at == position else 0 for at in range(width))
    for number in range(PROBE_COUNT):
        yield hashlib.sha256(f"probe {number}".encode()).digest()[:width]


def probe(header_length: int, payload_length: Callable[[bytes], Any]) -> dict[str, Any]:
    """Return the framing of a decoder, as the topology document writes it.

    It is `worker` if the header is not an integer of 1, 2, 4 or 8 bytes: then only the decoder knows the lengths.

    Args:
        header_length: Number of bytes of a header.
        payload_length: The decoder's function from header to length.

    Example:
        >>> probe(4, lambda header: int.from_bytes(header, "big"))
        {'kind': 'u32be'}
        >>> probe(3, lambda header: 7)
        {'kind': 'worker', 'header_bytes': 3}
    """
    if header_length in WIDTHS:
        answers = [(header, _answer(payload_length, header)) for header in probe_headers(header_length)]
        orders: tuple[Literal["big", "little"], ...] = ("big", "little")
        for order in orders:
            if all(answer == int.from_bytes(header, order) for header, answer in answers):
                suffix = "" if header_length == 1 else "be" if order == "big" else "le"
                return {"kind": WIDTHS[header_length] + suffix}
    return {"kind": "worker", "header_bytes": header_length}


def length_of(framing: dict[str, Any]) -> Callable[[bytes], int] | None:
    """Return the function that reads the payload's length from a header; None for framing `worker` or `newline`."""
    kind = framing["kind"]
    if kind in ("worker", NEWLINE):
        return None
    order: Literal["big", "little"] = "little" if kind.endswith("le") else "big"
    return lambda header: int.from_bytes(header, order)


def _answer(payload_length: Callable[[bytes], Any], header: bytes) -> int | None:
    # A decoder may fail for a length that it does not expect. If so, the worker has to find the lengths.
    try:
        answer = payload_length(header)
    except Exception:
        return None
    return answer if isinstance(answer, int) else None
