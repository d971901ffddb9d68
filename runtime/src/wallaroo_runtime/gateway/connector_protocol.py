"""Reads the frames that a connector may send (SPECIFICATION.md, section 7)."""

from collections.abc import Iterator

from wallaroo.experimental.protocol import EOS_MESSAGE, HELLO, MESSAGE, NOTIFY, ProtocolError, ReceivedFrame, read

CONTROL_BYTES = 64 * 1024
LENGTH_BYTES = 4


def read_frames(data: bytes) -> Iterator[ReceivedFrame]:
    """Yield the frames in `data`, which holds whole frames of a connector only.

    Raises:
        ProtocolError: A frame breaks the protocol; the frames before it have been yielded.
    """
    at = 0
    while at < len(data):
        begin = at + LENGTH_BYTES
        at = begin + int.from_bytes(data[at:begin], "big")
        tag = data[begin] if begin < at else MESSAGE
        if tag not in (HELLO, NOTIFY, MESSAGE, EOS_MESSAGE):
            reason = f"no connector sends a frame of tag {tag}"
            raise ProtocolError(reason)
        if tag != MESSAGE and at - begin - 1 > CONTROL_BYTES:
            reason = f"a frame of tag {tag} has {at - begin - 1} bytes; at most {CONTROL_BYTES} are allowed"
            raise ProtocolError(reason)
        yield read(data, begin, at)
