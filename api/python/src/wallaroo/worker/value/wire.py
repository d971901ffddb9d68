"""Cuts the bytes of a TCP source into payloads. The user's decoder must confirm the length in each new header."""

from collections.abc import Callable
from typing import Any

from wallaroo.component.application import Source
from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.location import one_line
from wallaroo.message.frame import FrameError
from wallaroo.message.framing import NEWLINE, length_of
from wallaroo.worker.value.letter_box import LetterBox

MAX_KNOWN_HEADERS = 10_000
MAX_WANTED = (1 << 64) - 1


class HeaderError(Exception):
    """The end of a message is unknown, because the decoder fails on its header or returns no length."""


class LineReader:
    """Cuts the bytes of a source whose messages are lines."""

    def payloads(
        self, data: bytes, count: int, sequence: int, enter: Callable[[int], bool]
    ) -> tuple[list[bytes], list[int]]:
        """Return the lines without line breaks, and their sequence numbers. `enter` is unused: lines have no header.

        Raises:
            FrameError: The bytes are not `count` complete lines.
        """
        lines = data.split(b"\n")
        if lines.pop() or len(lines) != count:
            msg = f"{data.count(10)} line breaks in {len(data)} bytes; expected {count}, one at their end"
            raise FrameError(msg)
        if b"\r" in data:
            lines = [line.removesuffix(b"\r") for line in lines]
        return lines, list(range(sequence, sequence + count))


class WireReader:
    """Cuts the bytes of one source, whose messages have a header with their length.

    Args:
        source: The source, with the framing that was found for its decoder.
        box: Takes messages whose header the decoder now reads in another way than this framing (C506).
    """

    def __init__(self, source: Source, box: LetterBox) -> None:
        assert source.payload_length is not None
        self._source, self._box, self._asks = source, box, source.payload_length
        self._fixed: Callable[[bytes], int] | None = length_of(source.fields["framing"])
        self._known: dict[bytes, int] = {}

    def payloads(
        self, data: bytes, count: int, sequence: int, enter: Callable[[int], bool] = lambda position: True
    ) -> tuple[list[bytes], list[int]]:
        """Return payloads and sequence numbers of the messages of a frame.

        Args:
            data: The messages, each with header and payload.
            count: Number of messages.
            sequence: Sequence number of the first message.
            enter: Called with a message's position before the decoder reads its header; returns whether it may read it.

        Raises:
            FrameError: The bytes are not `count` complete messages.
        """
        size = self._source.header_length
        known = self._known.get
        payloads: list[bytes] = []
        sequences: list[int] | None = None
        at, end, number = 0, len(data), sequence
        while at < end:
            start = at + size
            header = data[at:start]
            length = known(header)
            if length is None:
                length, is_agreed = self._length(header, enter, number - sequence)
                if not is_agreed:
                    sequences = list(range(sequence, number)) if sequences is None else sequences
                    at = start + length
                    self._mismatch(header, data[start:at], number)
                    number += 1
                    continue
            at = start + length
            payloads.append(data[start:at])
            if sequences is not None:
                sequences.append(number)
            number += 1
        if at != end or number - sequence != count:
            msg = f"{number - sequence} wire messages end at byte {at}; expected {count} in {end} bytes"
            raise FrameError(msg)
        return payloads, sequences if sequences is not None else list(range(sequence, number))

    def split(self, data: bytes, max_message_bytes: int) -> tuple[list[int], int]:
        """Return the lengths of the complete messages in `data`, and of the next message (0 if that is unknown).

        Raises:
            HeaderError: The decoder fails on a header.
        """
        size = self._source.header_length
        lengths: list[int] = []
        at = 0
        while at + size <= len(data):
            whole = size + self._asked(data[at : at + size])
            if at + whole > len(data) or whole - size > max_message_bytes:
                return lengths, min(whole, MAX_WANTED)
            lengths.append(whole)
            at += whole
        return lengths, 0

    def _length(self, header: bytes, enter: Callable[[int], bool], position: int) -> tuple[int, bool]:
        if len(header) < self._source.header_length:
            msg = f"a wire header of {len(header)} bytes; expected {self._source.header_length}"
            raise FrameError(msg)
        if not enter(position) and self._fixed is not None:
            return self._fixed(header), True
        if self._fixed is None:
            try:
                length = self._asked(header)
            except HeaderError as err:
                raise FrameError(str(err)) from err
        else:
            length = self._fixed(header)
            if self._answer(header) != length:
                return length, False
        if len(self._known) >= MAX_KNOWN_HEADERS:
            self._known.clear()
        self._known[header] = length
        return length, True

    def _asked(self, header: bytes) -> int:
        answer = self._answer(header)
        if isinstance(answer, int) and answer >= 0:
            return answer
        msg = f"payload_length returns {shown(answer)} for header {header.hex()}"
        raise HeaderError(msg)

    def _answer(self, header: bytes) -> Any:
        try:
            return self._asks(header)
        except BaseException as err:
            return one_line(err)

    def _mismatch(self, header: bytes, payload: bytes, sequence: int) -> None:
        assert self._fixed is not None
        finding = Diagnostic.of(
            "C506", step=self._source.name, actual=shown(self._answer(header)), header=header.hex(),
            expected=self._fixed(header),
        )  # fmt: skip
        self._box.put(finding, self._source.path, self._source.name, payload, sequence, is_payload=True)


def reader_of(source: Source, box: LetterBox) -> LineReader | WireReader | None:
    """Return the reader that cuts a source's bytes. Return None if frames already have the lengths of messages."""
    if source.fields.get("framing") == {"kind": NEWLINE}:
        return LineReader()
    return None if source.payload_length is None else WireReader(source, box)
