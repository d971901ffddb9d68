"""Exits, where messages leave a stage: in a frame for each bucket of the next state step, or in frames for a sink."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import add
from typing import Any, Protocol
from zlib import crc32

from wallaroo.message.frame import (
    DEAD_LETTER_PORT,
    MAX_BODY_BYTES,
    PLAIN,
    FrameHeader,
    joined_body,
    write_frame,
)
from wallaroo.message.key import MASK, SPREAD, key_bytes, state_key
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.value import letter_box
from wallaroo.worker.value.letter_box import LetterBox, WrongResultError
from wallaroo.worker.value.value import encode_text

# Largest size of a message in a frame's columns, without its value: 8 bytes for each of length, sequence and index.
COLUMN_BYTES = 24
# How many keys of a call are cached. Frequent keys come early; to cache more keys would cost more than it saves.
MAX_SLOTS = 8192
MAX_JOINED_BYTES = MAX_BODY_BYTES // 2  # limit for a frame with several messages
MANY_KEY_BYTES = 1 << 20  # keys of at least this size count when frames are cut
KEY_EXPECTED = "a key: str, bytes, a number, a tuple, a frozenset, an enum member, or a frozen dataclass"

# Functions that append a message's value, key index and sequence; the key index; perhaps a function that appends the
# time.
Slot = tuple[Any, ...]


class Writer(Protocol):
    """Serializes the messages of an exit: at once if user code can still change the message, else frame by frame."""

    def freeze(self, message: Any, /) -> Any:
        """Return a message in a form that later changes of the message do not affect."""

    def encode(self, messages: Sequence[Any], /) -> tuple[int, Sequence[int], bytes]:
        """Return encoding, lengths and bytes of messages that `freeze` has returned."""


class Group:
    """The messages for one bucket that a call has made so far, as the columns of a frame."""

    __slots__ = ("bucket", "indexes", "keys", "parts", "sequences", "times", "values")

    def __init__(self, bucket: int) -> None:
        self.bucket = bucket
        self.keys: dict[bytes, int] = {}
        self.values: list[Any] = []
        self.indexes: list[int] = []
        self.sequences: list[int] = []
        self.times: list[int] = []
        self.parts = self.values.append, self.indexes.append, self.sequences.append, self.keys


class KeyExit:
    """The exit at a KEY node: distributes messages to the buckets of their keys.

    Args:
        node: The KEY node.
        name: Name of the step.
        stage: The stage.
        codec: Writes the messages.
        box: Takes dead letters.
        is_own: Whether the keys of messages were set upstream; if not, the step's partition function returns them.

    Attributes:
        slots: Cache of slots by key, for keys of this call that are str, bytes or tuples.
    """

    def __init__(
        self, node: pb.Node, name: str, stage: pb.Stage, codec: Writer, box: LetterBox, *, is_own: bool = False
    ) -> None:
        self.path, self.port, self.name = node.path, node.port, name
        self._bytes_of = key_bytes if is_own else state_key
        self._bucket_count, self._frame_bytes = max(1, stage.bucket_count), stage.frame_bytes
        self._codec, self._box, self._has_times = codec, box, node.timestamps
        self._int_slots: dict[int, Slot] = {}
        self._groups: dict[int, Group] = {}
        self.slots: dict[Any, Slot] = {}

    def clear(self) -> None:
        """Forget the messages of this call."""
        self._groups = {}
        self._int_slots.clear()
        self.slots.clear()

    def slot(self, key: Any, message: Any, sequence: int) -> Slot | None:
        """Return the functions that add a message to its key's bucket; None after a dead letter for a wrong key."""
        # 1, True and 1.0 are equal, so only keys of exact type int may use the cache for ints.
        kind = type(key)
        if kind is int and key in self._int_slots:
            return self._int_slots[key]
        try:
            data = key.encode() if kind is str else self._bytes_of(key)
        except BaseException:  # of a type that cannot be a key, or of code of the key
            self._box.add(self.path, self.name, message, sequence, WrongResultError(key, KEY_EXPECTED))
            return None
        bucket = (crc32(data) * SPREAD & MASK) * self._bucket_count >> 32  # the formula of `bucket_of`, without a call
        group = self._groups.get(bucket)
        if group is None:
            group = self._groups[bucket] = Group(bucket)
        add, point, mark, keys = group.parts
        slot: Slot = (add, point, mark, keys.setdefault(data, len(keys)))
        if self._has_times:
            slot = (*slot, group.times.append)
        if kind is int:
            if len(self._int_slots) < MAX_SLOTS:
                self._int_slots[key] = slot
        elif len(self.slots) < MAX_SLOTS and isinstance(key, (str, bytes, tuple)):
            self.slots[key] = slot
        return slot

    def freeze(self, message: Any, sequence: int) -> Any:
        """Return a message in an immutable form. If that fails, make a dead letter, and return None."""
        try:
            return self._codec.freeze(message)
        except BaseException as err:
            self._box.add(self.path, self.name, message, sequence, err, code="C504")
            return None

    def order(self) -> None:
        """Sort the messages of each bucket by sequence."""
        for group in self._groups.values():
            put_in_order(group.sequences, group.values, group.indexes, group.times)

    def outputs(self, index: int, timestamp_ms: int) -> Iterator[pb.Output]:
        """Yield the frames of this call, bucket by bucket."""
        for bucket in sorted(self._groups):
            group = self._groups[bucket]
            if not group.values:
                continue
            encoding, lengths, data = self._codec.encode(group.values)
            keys, sizes = list(group.keys), None
            key_lengths = list(map(len, keys))
            if sum(key_lengths) > MANY_KEY_BYTES:
                sizes = [length + key_lengths[key] for length, key in zip(lengths, group.indexes, strict=True)]
            for start, end, piece in cut_ranges(lengths, data, self._frame_bytes, sizes):
                value, sequence = group.values[start], group.sequences[start]
                if self._box.refuses(self, value, sequence, lengths[start], key_size=key_lengths[group.indexes[start]]):
                    continue
                used, indexes = keys, group.indexes
                if end - start < len(lengths):
                    used, indexes = _reindex(keys, group.indexes[start:end])
                frame = frame_of(
                    lengths[start:end], piece, group.sequences[start:end], port=self.port, encoding=encoding,
                    timestamp_ms=timestamp_ms, times=group.times[start:end], keys=used, key_indexes=indexes,
                )  # fmt: skip
                yield pb.Output(index=index, port=self.port, bucket=bucket, frame=frame)


class SinkExit:
    """The exit at a TCP sink, or at a sink of whole Kafka records: collects the results of its encoder."""

    def __init__(self, node: pb.Node, name: str, stage: pb.Stage, box: LetterBox) -> None:
        self.path, self.port, self.name = node.path, node.port, name
        self._frame_bytes, self._box = stage.frame_bytes, box
        self.values: list[Any] = []
        self.sequences: list[int] = []
        self.short = letter_box.MAX_VALUE_BYTES // 4  # a text of at most so many characters is never too large

    def clear(self) -> None:
        """Forget the messages of this call."""
        self.values.clear()
        self.sequences.clear()

    def other(self, result: Any, message: Any, sequence: int) -> bytes | None:
        """Return the bytes of a result that is long, or neither str nor bytes; None if it became a dead letter."""
        if isinstance(result, str):
            try:
                result = str.encode(result)
            except UnicodeEncodeError as err:
                self._box.add(self.path, self.name, message, sequence, err, code="C504")
                return None
        if not isinstance(result, (bytes, bytearray, memoryview)):
            self._box.add(self.path, self.name, message, sequence, WrongResultError(result, "str, bytes or None"))
            return None
        data = bytes(result)
        return None if self._box.refuses(self, message, sequence, len(data)) else data

    def order(self) -> None:
        """Sort the messages by sequence."""
        put_in_order(self.sequences, self.values)

    def outputs(self, index: int, timestamp_ms: int) -> Iterator[pb.Output]:
        """Yield the frames of this call."""
        if not self.values:
            return
        try:
            lengths, data = self._bytes()
        except UnicodeEncodeError:
            self._drop_unencodable()
            lengths, data = self._bytes()
        for start, end, piece in cut_ranges(lengths, data, self._frame_bytes):
            sequences = self.sequences[start:end]
            frame = frame_of(lengths[start:end], piece, sequences, port=self.port, timestamp_ms=timestamp_ms)
            yield pb.Output(index=index, port=self.port, bucket=-1, frame=frame)

    def _bytes(self) -> tuple[Sequence[int], bytes]:
        if set(map(type, self.values)) == {str}:
            return encode_text(self.values, "strict")
        parts = [value if type(value) is bytes else value.encode() for value in self.values]
        return list(map(len, parts)), b"".join(parts)

    def _drop_unencodable(self) -> None:
        """Make dead letters of results that UTF-8 cannot encode. The letters show results in place of messages."""
        kept: list[tuple[Any, int]] = []
        for value, sequence in zip(self.values, self.sequences, strict=True):
            try:
                kept.append((value if type(value) is bytes else value.encode(), sequence))
            except UnicodeEncodeError as err:
                self._box.add(self.path, self.name, value, sequence, err, code="C504")
        # The loop has the lists' append functions, so the list objects must stay the same.
        self.values[:] = [value for value, _ in kept]
        self.sequences[:] = [sequence for _, sequence in kept]


class KeyedExit:
    """Collects messages, each with a key and perhaps a further item (a time, or headers), which the subclass writes."""

    has_keys = True

    def __init__(self, node: pb.Node, name: str, stage: pb.Stage, box: LetterBox) -> None:
        self.path, self.port, self.name = node.path, node.port, name
        self._frame_bytes, self._box = stage.frame_bytes, box
        self.values: list[bytes] = []
        self.sequences: list[int] = []
        self.keys: list[bytes] = []
        self._more: dict[int, Any] = {}  # further items, by the position of their message
        self.short = letter_box.MAX_VALUE_BYTES  # value and key of at most so many bytes are not too large

    def clear(self) -> None:
        """Forget the messages of this call."""
        for each in (self.values, self.sequences, self.keys, self._more):
            each.clear()

    def take(self, value: bytes, sequence: int, key: bytes, more: Any) -> None:
        """Add a message with its key and further item."""
        if more:
            self._more[len(self.values)] = more
        self.values.append(value)
        self.sequences.append(sequence)
        self.keys.append(key)

    def order(self) -> None:
        """Sort the messages by sequence."""
        positions = list(range(len(self.values)))
        put_in_order(self.sequences, self.values, self.keys, positions)
        self._more = {at: self._more[position] for at, position in enumerate(positions) if position in self._more}

    def columns(self, more: dict[int, Any], positions: range, timestamp_ms: int) -> dict[str, Any]:
        """Return the arguments with which `frame_of` writes the further items of the messages at `positions`."""
        raise NotImplementedError

    def outputs(self, index: int, timestamp_ms: int) -> Iterator[pb.Output]:
        """Yield the frames of this call."""
        sizes = list(map(add, map(len, self.values), map(len, self.keys)))
        for start, end, _ in cut_ranges(sizes, b"", self._frame_bytes, sizes):
            values, keys = self.values[start:end], self.keys[start:end]
            numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
            frame = frame_of(
                list(map(len, values)),
                b"".join(values),
                self.sequences[start:end],
                port=self.port,
                keys=list(numbers) if self.has_keys else (),
                key_indexes=list(map(numbers.__getitem__, keys)) if self.has_keys else (),
                **self.columns(self._more, range(start, end), timestamp_ms),
            )
            yield pb.Output(index=index, port=self.port, bucket=-1, frame=frame)


def put_in_order(sequences: list[int], *columns: list[Any]) -> None:
    """Sort messages by sequence, in place. Messages of equal sequence keep their order. A column may be empty.

    Example:
        >>> sequences, values = [2, 1, 2], ["a", "b", "c"]
        >>> put_in_order(sequences, values)
        >>> sequences, values
        ([1, 2, 2], ['b', 'a', 'c'])
    """
    order = sorted(range(len(sequences)), key=sequences.__getitem__)
    # The loops have the lists' append functions, so the list objects must stay the same.
    for each in (*columns, sequences):
        if each:
            each[:] = [each[position] for position in order]


def letter_outputs(box: LetterBox, index: int, timestamp_ms: int, frame_bytes: int) -> Iterator[pb.Output]:
    """Yield the frames of a call's dead letters."""
    lengths = list(map(len, box.letters))
    for start, end, piece in cut_ranges(lengths, b"".join(box.letters), frame_bytes):
        sequences = box.sequences[start:end]
        frame = frame_of(lengths[start:end], piece, sequences, port=DEAD_LETTER_PORT, timestamp_ms=timestamp_ms)
        yield pb.Output(index=index, port=DEAD_LETTER_PORT, bucket=-1, frame=frame)


def frame_of(
    lengths: Sequence[int],
    data: bytes,
    sequences: Sequence[int],
    *,
    port: int,
    encoding: int = PLAIN,
    timestamp_ms: int = 0,
    times: Sequence[int] = (),
    **columns: Sequence[Any],
) -> bytes:
    """Return a frame as bytes. Sequences and times are written as differences to the smallest of them."""
    first, earliest = min(sequences), min(times, default=timestamp_ms)
    flags, body = joined_body(
        lengths,
        data,
        sequences=[sequence - first for sequence in sequences],
        timestamps=[time - earliest for time in times],
        **columns,
    )
    return write_frame(FrameHeader(port, len(lengths), first, flags, encoding, earliest), body)


def cut_ranges(
    lengths: Sequence[int], data: bytes, frame_bytes: int, sizes: Sequence[int] | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """Cut messages into frames. Yield for each frame the index of its first message, the next index, and the values.

    A frame ends when it exceeds `frame_bytes`.

    Args:
        lengths: Lengths of the messages' values.
        data: The values of all messages.
        frame_bytes: Wanted size of a frame's body.
        sizes: Size of each message in a frame, if it is more than the length of its value.
    """
    limit = min(frame_bytes or MAX_JOINED_BYTES, MAX_JOINED_BYTES)
    if (len(data) if sizes is None else sum(sizes)) + COLUMN_BYTES * len(lengths) <= limit:
        if lengths:
            yield 0, len(lengths), data
        return
    ends = list(accumulate(size + COLUMN_BYTES for size in sizes or lengths))
    start = at = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        end = bisect_right(ends, before + limit) + 1
        # A frame includes the message that exceeds the limit, unless the frame would then be too large.
        if end > len(ends) or (end - 1 > start and ends[end - 1] - before > MAX_JOINED_BYTES):
            end = min(end - 1, len(ends))
        end = max(end, start + 1)
        size = sum(lengths[start:end])
        yield start, end, data[at : at + size]
        start, at = end, at + size


def _reindex(keys: list[bytes], indexes: Sequence[int]) -> tuple[list[bytes], list[int]]:
    new: dict[int, int] = {}
    renumbered = [new.setdefault(index, len(new)) for index in indexes]
    return [keys[index] for index in new], renumbered
