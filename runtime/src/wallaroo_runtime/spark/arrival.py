"""Puts messages into the order of their arrival where frames overlap.

A frame's messages stand in order, and so do the frames that one call of a worker makes for one step. Those of several
steps of one state, or of several buckets of the level before, overlap: each holds messages from between the others'.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from wallaroo.frame import HEADER_BYTES, Frame, check_frame, encode_frame, read_body

FRAME_BYTES = 1 << 20


@dataclass(slots=True)
class _Span:
    """A frame, and the sequence numbers of its first and last message; without messages, its own."""

    data: bytes
    frame: Frame
    first: int
    last: int


def in_order_of_arrival(frames: Sequence[bytes]) -> list[bytes]:
    """Return frames with the same messages, none of which holds a message from before the end of the one before it.

    Messages with one sequence number, which derive from one source message, keep the order of their frames.

    Args:
        frames: In the order of their first messages; a tick, which has none, comes before messages of its sequence.

    Raises:
        FrameError: A frame is damaged.
    """
    if len(frames) < 2:
        return list(frames)
    spans = [_span(data) for data in frames]
    if all(one.last <= other.first for one, other in pairwise(spans)):
        return list(frames)
    return list(_merged(spans))


def _span(data: bytes) -> _Span:
    header = check_frame(data)
    base, count = header.sequence, header.count
    if not count:
        return _Span(data, Frame(header), base, base)
    frame = read_body(header, data, HEADER_BYTES)
    numbers = frame.sequences
    if not numbers:
        return _Span(data, frame, base, base + count - 1)
    return _Span(data, frame, base + min(numbers), base + max(numbers))


def _merged(spans: Sequence[_Span]) -> Iterator[bytes]:
    """Cut the frames at every message that another frame's messages stand before or behind."""
    places: list[tuple[int, int, int]] = []
    for number, span in enumerate(spans):
        count = span.frame.header.count
        if not count:
            places.append((span.first, -1, number))  # a tick
            continue
        numbers = span.frame.sequences or range(count)
        base = span.frame.header.sequence
        places += [(base + each, number, at) for at, each in enumerate(numbers)]
    # Stable, and by frame within a sequence: messages of one source message keep their order.
    places.sort(key=lambda place: (place[0], place[1]))
    values = [span.frame.values() for span in spans]
    for number, run in groupby(places, key=lambda place: place[1]):
        if number < 0:
            yield from (spans[at].data for _, _, at in run)
        else:
            yield from _written(spans[number].frame, values[number], [at for _, _, at in run])


def _written(frame: Frame, values: Sequence[bytes], chosen: Sequence[int]) -> Iterator[bytes]:
    """Write the chosen messages of a frame as frames of at most about 1 MiB."""
    size, start = 0, 0
    for end, at in enumerate(chosen):
        size += len(values[at])
        if size > FRAME_BYTES and end > start:
            yield _one(frame, values, chosen[start:end])
            size, start = len(values[at]), end
    yield _one(frame, values, chosen[start:])


def _one(frame: Frame, values: Sequence[bytes], chosen: Sequence[int]) -> bytes:
    header = frame.header
    sequences = [frame.sequence_of(at) for at in chosen]
    first = min(sequences)
    keys: dict[bytes, int] = {}
    indexes = [keys.setdefault(frame.keys[frame.key_indexes[at]], len(keys)) for at in chosen] if frame.keys else []
    times = [frame.timestamps[at] for at in chosen] if frame.timestamps else []
    return encode_frame(
        [values[at] for at in chosen],
        port=header.port,
        sequence=first,
        encoding=header.encoding,
        timestamp_ms=header.timestamp_ms,
        keys=list(keys),
        key_indexes=indexes,
        sequences=[sequence - first for sequence in sequences],
        timestamps=times,
    )
