"""Dead letters of records that a sink's topic never takes. The sink finds such records after publication."""

import shlex
import time
from collections.abc import Mapping
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.durable.file import replace_file

CODE = "R674"
CORRECT = "correct its options and run again; it continues from the checkpoint"
SET_ASIDE = (
    "let the topic take it, e.g. give it more partitions, and run again; or run with `--on-error dead_letter`, which "
    "makes dead letters of such records and goes on"
)
PREVIEW = 200
PREFIX = "refused-"  # names of files of such letters begin with this
FIRST_PARTITION = 1 << 20  # partition in ids of such letters; Spark has no partition with such a number


def refused_letter(
    path: str, sink: str, sequence: int, key: bytes | None, value: bytes | None, why: str
) -> pb.DeadLetter:
    """Return the dead letter for a record that a sink's topic never takes.

    Args:
        path: Path of the sink.
        sink: Name of the sink.
        sequence: Sequence of the message that the record derives from.
        key: Key of the record; None if it has no key.
        value: Value of the record; None if it has no value.
        why: Reason, which names the topic.
    """
    data = value or b""
    return pb.DeadLetter(
        code=CODE, path=path, step=sink, key=key or b"", has_key=key is not None, sequence=sequence,
        port=DEAD_LETTER_PORT, input=data, preview=data[:PREVIEW].decode("utf-8", "backslashreplace"), error=why,
        timestamp_ms=time.time_ns() // 1_000_000,
    )  # fmt: skip


def set_aside(folder: Path, port: int, letters: Mapping[int, pb.DeadLetter]) -> Diagnostic:
    """Write dead letters of one sink durably, and return the finding for them. A repeated call overwrites the files.

    Args:
        folder: Folder of the dead letters.
        port: Port of the sink.
        letters: Dead letters by the unique number of the message at this sink; at least one.
    """
    partition = FIRST_PARTITION + port
    for number, letter in letters.items():
        frame = encode_frame([letter.SerializeToString()], port=DEAD_LETTER_PORT)
        replace_file(folder / f"{PREFIX}{number}-{partition}.frames", frame, durable=True)
    number, first = next(iter(letters.items()))
    key = f"key {shown(first.key)}" if first.has_key else "no key"
    reason = f"{first.error}; set aside: {len(letters)} dead letters, the first has {key}"
    checkpoint = shlex.quote(str(folder.parent.absolute()))
    fix = f"correct what makes it; `wallaroo dead-letters show {checkpoint} {number}-{partition}-0` shows it"
    return Diagnostic.of(CODE, sink=first.step, place=f"position {first.sequence}", reason=reason, fix=fix)
