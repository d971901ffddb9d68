"""The origin of dead letters of level 0: which record of Kafka failed."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from google.protobuf.message import DecodeError

from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame, read_frame
from wallaroo.worker._proto import record_pb2
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.topology.model import KafkaSource

KEY_BYTES = 200  # of a key, which is there to be shown


class Origins:
    """Puts into dead letters which record they are of, in a task, which reads one partition of a topic.

    Sequences are offsets there. Those of tables are not: of these the decoder's input says it, which is the record.
    """

    def __init__(self, source: KafkaSource) -> None:
        self._source, self._partition = source, -1
        self._sent: deque[bytes] = deque()  # frames whose outputs have not come; the worker's client holds them, too

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows, and take note of their partition."""
        for batch in batches:
            if batch.num_rows:
                self._partition = batch.column("partition")[0].as_py()
            yield batch

    def send(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the frames of the source, and take note of them."""
        for frame in frames:
            self._sent.append(frame)
            yield frame

    def put(self, outputs: Sequence[pb.Output]) -> None:
        """Put the origin into the dead letters among the outputs of the next frame that was sent.

        Outputs of later stages follow when there is none: these know no key.
        """
        frame = self._sent.popleft() if self._sent else b""
        for output in outputs:
            if output.port == DEAD_LETTER_PORT:
                output.frame = self._with_origins(output.frame, _keys(frame) if frame else {})

    def _with_origins(self, data: bytes, keys: dict[int, bytes]) -> bytes:
        frame = read_frame(data)
        letters = list(map(pb.DeadLetter.FromString, frame.values()))
        for letter in letters:
            origin = self._of_table(letter) if self._source.table else self._of_stream(letter, keys)
            if origin is not None:
                letter.origin.CopyFrom(origin)
        return encode_frame(
            [letter.SerializeToString() for letter in letters],
            port=DEAD_LETTER_PORT,
            sequence=frame.header.sequence,
            timestamp_ms=frame.header.timestamp_ms,
            sequences=frame.sequences,
        )

    def _of_stream(self, letter: pb.DeadLetter, keys: dict[int, bytes]) -> pb.Origin:
        return self._origin(letter.sequence, keys.get(letter.sequence, b""))

    def _of_table(self, letter: pb.DeadLetter) -> pb.Origin | None:
        if letter.path != self._source.path or not letter.input:
            return None
        try:
            record = record_pb2.Record.FromString(letter.input)
        except DecodeError:
            return None
        return self._origin(record.offset, record.key)

    def _origin(self, offset: int, key: bytes) -> pb.Origin:
        source = self._source
        return pb.Origin(
            source=source.name, topic=source.topic, partition=self._partition, offset=offset, key=key[:KEY_BYTES]
        )


def _keys(data: bytes) -> dict[int, bytes]:
    """Return the keys of a frame's messages by sequence."""
    frame = read_frame(data)
    return {frame.sequence_of(at): frame.keys[index] for at, index in enumerate(frame.key_indexes)}
