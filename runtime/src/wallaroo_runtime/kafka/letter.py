"""Which record of Kafka a dead letter is of."""

from typing import Any

from google.protobuf.message import DecodeError

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.worker._proto import record_pb2
from wallaroo.worker._proto import worker_pb2 as pb


def record_place(letter: pb.DeadLetter) -> dict[str, Any]:
    """Return topic, partition, offset and key of the whole record that a decoder failed on; empty: it is no such.

    Its input is the record as runs write it, which no other payload is by chance.
    """
    if "/sources/" not in letter.path or letter.encoding or not letter.input:
        return {}
    try:
        record = record_pb2.Record.FromString(letter.input)
    except DecodeError:
        return {}
    is_own = record.SerializeToString() == letter.input and record.offset == letter.sequence
    if not (is_own and record.topic and record.HasField("partition")):
        return {}
    key = shown(record.key) if record.HasField("key") else "none"
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset, "key": key}


def record_words(letter: pb.DeadLetter) -> str:
    """Return the same as words: `topic orders, partition 2, offset 13, key b'ann'`; empty: it is no such."""
    return ", ".join(f"{name} {value}" for name, value in record_place(letter).items())
