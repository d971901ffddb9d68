"""Where messages leave a stage as records with keys: sinks of Kafka and Spark."""

from collections.abc import Iterator
from typing import Any

from wallaroo.application import Sink
from wallaroo.frame import encode_frame
from wallaroo.kafka_record import RECORD
from wallaroo.key import key_bytes
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.dead_letter import LetterBox, WrongResultError
from wallaroo.worker.exit import cut_ranges, put_in_order

EXPECTED = "bytes or str, or a tuple (value, key) or (value, key, partition)"
MAX_PARTITION = 0x7FFFFFFF
_PARTITION = b"\x09\x00partition\x04\x00\x00\x00"


def makes_rows(sink: Sink) -> bool:
    """Say whether a sink's encoder may return a key and a partition besides the value."""
    return sink.kind != "tcp" and sink.fields.get("content") != RECORD


class RecordExit:
    """Collects what a sink's encoder gives: values, each with a key and perhaps a partition."""

    def __init__(self, node: pb.Node, name: str, stage: pb.Stage, box: LetterBox) -> None:
        self.path, self.port, self.name = node.path, node.port, name
        self._frame_bytes, self._box = stage.frame_bytes, box
        self._values: list[bytes] = []
        self._keys: list[bytes] = []
        self._headers: list[bytes] = []
        self._sequences: list[int] = []

    def clear(self) -> None:
        """Forget the messages of this call."""
        for each in (self._values, self._keys, self._headers, self._sequences):
            each.clear()

    def put(self, result: Any, message: Any, sequence: int) -> bool:
        """Take an encoder's result; returns False when there is no value, or it is a dead letter now."""
        try:
            value, key, headers = _parts(result)
        except (TypeError, ValueError) as err:
            is_text = isinstance(err, UnicodeEncodeError)
            error = err if is_text else WrongResultError(result, EXPECTED)
            self._box.add(self.path, self.name, message, sequence, error, code="C504" if is_text else "C501")
            return True  # as a dead letter it is counted already
        if value is None:
            return False
        if self._box.refuses(self, message, sequence, len(value), key_size=len(key)):
            return True
        self._values.append(value)
        self._keys.append(key)
        self._headers.append(headers)
        self._sequences.append(sequence)
        return True

    def order(self) -> None:
        """Put the messages in the order of their sequences."""
        put_in_order(self._sequences, self._values, self._keys, self._headers)

    def outputs(self, index: int, timestamp_ms: int) -> Iterator[pb.Output]:
        """Yield the frames of this call."""
        sizes = [len(value) + len(key) for value, key in zip(self._values, self._keys, strict=True)]
        for start, end, _ in cut_ranges(sizes, b"", self._frame_bytes, sizes):
            keys: dict[bytes, int] = {}
            indexes = [keys.setdefault(key, len(keys)) for key in self._keys[start:end]]
            sequences, headers = self._sequences[start:end], self._headers[start:end]
            first = min(sequences)
            frame = encode_frame(
                self._values[start:end],
                port=self.port,
                sequence=first,
                timestamp_ms=timestamp_ms,
                keys=list(keys),
                key_indexes=indexes,
                sequences=[sequence - first for sequence in sequences],
                headers=headers if any(headers) else (),
            )
            yield pb.Output(index=index, port=self.port, bucket=-1, frame=frame)


def _parts(result: Any) -> tuple[bytes | None, bytes, bytes]:
    """Return value, key and encoded headers of an encoder's result."""
    value, key, partition = result, None, None
    if isinstance(result, tuple):
        value, key, partition = result if len(result) == 3 else (*result, None)
    if isinstance(value, str):
        value = value.encode()
    elif isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    elif value is not None and not isinstance(value, bytes):
        raise TypeError
    if partition is None:
        headers = b""
    elif isinstance(partition, int) and 0 <= partition <= MAX_PARTITION:
        headers = _PARTITION + partition.to_bytes(4, "little")
    else:
        raise TypeError
    return value, b"" if key is None else key_bytes(key), headers
