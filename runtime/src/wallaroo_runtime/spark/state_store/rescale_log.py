"""Sorts the logs of buckets by other buckets, without the code that made the states."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa

from wallaroo.message.frame import encode_frame, split_frames
from wallaroo.message.key import bucket_of
from wallaroo.message.state_piece import write_pieces
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.spark.failure.translate import carried
from wallaroo_runtime.spark.task.state import LOG_SCHEMA
from wallaroo_runtime.storage.state_log import StateKey, StateValue, latest_states
from wallaroo_runtime.worker.session import grouped

ENTRY_BYTES = 1024 * 1024
COUNT_SCHEMA = "keys LONG, bytes LONG"
_COUNT_ARROW = pa.schema([("keys", pa.int64()), ("bytes", pa.int64())])
_ENTRY = LOG_SCHEMA.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class LogSorter:
    """The function of `mapInArrow` that writes one stage's logs to files, sorted by new bucket.

    Attributes:
        folder: Gets a directory for each new bucket, with a file for each old one that had keys of it.
        bucket_count: The new number of buckets.
    """

    folder: Path
    bucket_count: int

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sort the logs of one partition; a bucket's entries follow each other, oldest first."""
        with carried():
            rows = (row for batch in batches for row in batch.to_pylist())
            entries = ((row["key"]["bucket"], row["list_element"][_ENTRY]) for row in rows)
            for bucket_id, group in groupby(entries, itemgetter(0)):
                count = self._sort(bucket_id, (entry for _, entry in group))
                yield pa.RecordBatch.from_pylist([count], schema=_COUNT_ARROW)

    def _sort(self, bucket_id: int, entries: Iterable[bytes]) -> dict[str, int]:
        states = latest_states(entries)
        parts: dict[int, list[bytes]] = defaultdict(list)
        for bucket, frame in bucket_frames(states, self.bucket_count):
            parts[bucket].append(frame)
        for bucket, frames in parts.items():
            place = self.folder / str(bucket)
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(place / f"{bucket_id}.frames", b"".join(frames))
        return {"keys": len(states), "bytes": sum(len(frame) for frames in parts.values() for frame in frames)}


def bucket_frames(states: dict[StateKey, StateValue], bucket_count: int) -> Iterator[tuple[int, bytes]]:
    """Yield frames of states, each with its bucket; about as large as `ENTRY_BYTES`, or one state, in pieces."""
    groups: dict[tuple[int, int, int], list[tuple[bytes, bytes]]] = defaultdict(list)
    for (port, key), (encoding, value) in states.items():
        groups[bucket_of(key, bucket_count), port, encoding].append((key, value))
    for (bucket, port, encoding), pairs in groups.items():
        for part in grouped(pairs, lambda pair: len(pair[0]) + len(pair[1]), ENTRY_BYTES):
            keys, values = zip(*part, strict=True)
            if len(part) == 1:
                pieces = write_pieces(values[0], key=keys[0], port=port, encoding=encoding)
                yield from ((bucket, piece) for piece in pieces)
                continue
            frame = encode_frame(values, port=port, encoding=encoding, keys=keys, key_indexes=range(len(keys)))
            yield bucket, frame


def sorted_entries(folder: Path, stage: str, bucket: int) -> Iterator[bytes]:
    """Yield the entries of a new bucket's log."""
    for path in sorted((folder / stage / str(bucket)).glob("*.frames")):
        data = path.read_bytes()
        for _, start, end in split_frames(data):
            yield data[start:end]
