"""Entries: the points of a stage where messages come in. They cut frames into messages and decode them."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from wallaroo.component.application import Source
from wallaroo.message.frame import FRAMED, PLAIN, Frame, cut
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.crossing import Values
from wallaroo.worker.stage.flight import MESSAGE, Words
from wallaroo.worker.stage.user_error import fail_of
from wallaroo.worker.value.letter_box import LetterBox
from wallaroo.worker.value.value import ValueCodec
from wallaroo.worker.value.wire import LineReader, WireReader


class SourceEntry:
    """The entry of a stage for the frames of one port: cuts them into messages, and chooses the decoder.

    Args:
        number: Number of the node.
        source: The source. For messages of another stage it has only a path.
        own: Reads the worker's own encodings.
        values: Reads messages of another stage; None at a source.
        wire: Cuts the bytes of a source; None if their lengths are in the frame.
    """

    def __init__(
        self,
        number: int,
        source: Source,
        own: ValueCodec,
        values: Values | None = None,
        wire: LineReader | WireReader | None = None,
    ) -> None:
        self.number, self.source = number, source
        self._own, self._values, self._wire = own, values, wire

    def payloads(self, frame: Frame, enter: Callable[[int], bool]) -> tuple[list[bytes], list[int]]:
        """Return the bytes and the sequence numbers of a frame's messages. `enter` is as for `WireReader.payloads`."""
        header = frame.header
        if header.encoding == FRAMED and self._wire is not None:
            return self._wire.payloads(frame.data, header.count, header.sequence, enter)
        return cut(frame.data, frame.lengths), list(range(header.sequence, header.sequence + header.count))

    def reader(self, encoding: int) -> Any:
        """Return the function that reads messages with this encoding, e.g. the user's decoder for payloads."""
        if self._values is not None:
            return self._values.loader(encoding)
        if self.source.generator is not None or encoding not in (PLAIN, FRAMED):
            return self._own.loader(encoding)
        return self.source.decode

    def without_skipped(
        self,
        skips: Mapping[int, pb.Skip],
        box: LetterBox,
        payloads: list[bytes],
        sequences: list[int],
        ordinals: Sequence[int],
    ) -> tuple[list[bytes], list[int], list[int]]:
        """Make dead letters of messages to skip, and return payloads, sequences and ordinals of the others."""
        kept = []
        for position, (payload, sequence, ordinal) in enumerate(zip(payloads, sequences, ordinals, strict=True)):
            if (skip := skips.get(ordinal - 1)) is None:
                kept.append(position)
            else:
                box.skip(skip, self.source.path, self.source.name, payload, sequence, is_payload=True)
        return [payloads[at] for at in kept], [sequences[at] for at in kept], [ordinals[at] for at in kept]


def decoder_fail_of(box: LetterBox, node: pb.Node, name: str) -> Callable[[Any, int, BaseException], None]:
    """Return the function that makes a dead letter of a message that the decoder refused (C505)."""
    return fail_of(box, node, name, code="C505", is_payload=True)


def entering(first: int, skips: Container[int], flight: Words) -> Callable[[int], bool]:
    """Return a function that records a message as in flight before the decoder gets its header."""

    def enter(position: int) -> bool:
        is_allowed = first + position not in skips
        if is_allowed:
            flight[MESSAGE] = first + position + 1
        return is_allowed

    return enter
