"""Reads what an application gave: out of its outbox, or as the engine in memory has it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from model.compute import Item, item_of
from model.reference import Place
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame, read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.memory import BatchResult
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.storage.outbox.live import FOLDER, OUTPUT, live_segments, whole_entries
from wallaroo_runtime.storage.outbox.log import LogReader
from wallaroo_runtime.topology.model import Topology

FIRST_SINK_PORT = 10000


@dataclass
class Published:
    """What an application gave.

    Attributes:
        lines: For each sink its items, in the order in which they are sent.
        letters: The dead letters.
        errors: What the dead letters say, for people.
        names: The names of sinks in dead letters.
        counts_ticks: Whether the dead letters' numbers count ticks, too.
    """

    lines: dict[int, list[Item]] = field(default_factory=dict)
    letters: Counter[Place] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    counts_ticks: bool = True


def published(directory: Path, topology: Topology, plan: Plan) -> Published:
    """Read the outbox and the dead letters of a checkpoint directory."""
    records = list(LogReader(directory / "outbox").records())
    frames: dict[int, list[bytes]] = defaultdict(list)
    for file in (file for record in records for file in record.files):
        if file.port != DEAD_LETTER_PORT:  # those lie in a directory of their own
            frames[file.port].append((directory / "outbox" / file.name).read_bytes())
    letters = [file.read_bytes() for file in sorted((directory / "dead-letters").glob("*.frames"))]
    return _read(frames, letters, topology, plan)


def delivered(directory: Path, topology: Topology, plan: Plan) -> Published:
    """Read the live log and the dead letters of a checkpoint directory; nothing of the log was removed."""
    frames: dict[int, list[bytes]] = defaultdict(list)
    for segment in live_segments(directory / "outbox" / FOLDER):
        for entry in whole_entries(segment):
            if entry.kind == OUTPUT and entry.port != DEAD_LETTER_PORT:
                values = list(read_frame(entry.content, 0).values())[entry.skip :]
                frames[entry.port].append(encode_frame(values, port=entry.port))
    letters = [file.read_bytes() for file in sorted((directory / "dead-letters").glob("*.frames"))]
    return _read(frames, letters, topology, plan)


def collected(batches: Sequence[BatchResult], topology: Topology, plan: Plan) -> Published:
    """Read what micro-batches in memory gave."""
    frames: dict[int, list[bytes]] = defaultdict(list)
    for batch in batches:
        for port, found in batch.frames.items():
            frames[port] += found
    return _read(frames, [frame for batch in batches for frame in batch.letters], topology, plan)


def _read(frames: Mapping[int, Sequence[bytes]], letters: Sequence[bytes], topology: Topology, plan: Plan) -> Published:
    made = Published()
    numbers = {sink.path: sink.port - FIRST_SINK_PORT for sink in topology.sinks()}
    for path, number in numbers.items():
        values = _values(frames.get(plan.ports[path], ()))
        made.lines[number] = [item_of(value.decode().rstrip("\n")) for value in values]
    for letter in map(pb.DeadLetter.FromString, _values(letters)):
        place = f"sink{numbers[letter.path]}" if letter.path in numbers else letter.step
        made.letters[place, letter.sequence] += 1
        made.errors.append(f"{letter.path} {letter.sequence}: {letter.code} {letter.error}")
    return made


def _values(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for data in pieces:
        for _, start, _ in split_frames(data):
            yield from read_frame(data, start).values()
