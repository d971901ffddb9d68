"""Messages for `make bench-keys`: names of keys, first each one once, then drawn uniformly."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from wallaroo.message.frame import read_frame
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.log import LogReader

FRAME_MESSAGES = 65_536


def draw(keys: int, messages: int, *, every_key_first: bool, seed: int) -> list[int]:
    """Return the numbers of the keys of some messages."""
    source = random.Random(seed)
    first = list(range(keys)) if every_key_first else []
    source.shuffle(first)
    return (first + source.choices(range(keys), k=max(0, messages - len(first))))[:messages]


def name(number: int) -> bytes:
    """Return the name of a key."""
    return b"k%07d" % number


def append(directory: Path, numbers: Sequence[int]) -> None:
    """Append a message for each number to a journal."""
    writer = JournalWriter(directory)
    for start in range(0, len(numbers), FRAME_MESSAGES):
        part = numbers[start : start + FRAME_MESSAGES]
        data = b"".join(len(text).to_bytes(4, "big") + text for text in map(name, part))
        writer.append(0, len(part), [data], timestamp_ms=0)
    writer.close()


def outputs(outbox: Path) -> Iterator[bytes]:
    """Yield everything in the outbox, in order."""
    reader = LogReader(outbox)
    for record in reader.records():
        for file in record.files:
            data, at = (outbox / file.name).read_bytes(), 0
            while at < len(data):
                frame = read_frame(data, at)
                yield from frame.values()
                at += 40 + frame.header.body_bytes
    reader.close()


def check(outbox: Path, numbers: Sequence[int]) -> None:
    """Assert that each key's outputs count 1, 2, 3, ... and end where the messages say."""
    expected: dict[bytes, int] = {}
    for number in numbers:
        expected[name(number)] = expected.get(name(number), 0) + 1
    counts: dict[bytes, int] = {}
    for line in outputs(outbox):
        key, count = line.split()
        if int(count) != counts.get(key, 0) + 1:
            message = f"{line!r} follows {counts.get(key, 0)}"
            raise AssertionError(message)
        counts[key] = int(count)
    if counts != expected:
        message = f"{len(counts)} keys and {sum(counts.values())} messages; expected {len(expected)}, {len(numbers)}"
        raise AssertionError(message)
