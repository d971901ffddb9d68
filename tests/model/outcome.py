"""Reads what an application emitted of its outbox."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from model.compute import Item, item_of
from model.reference import Place
from wallaroo.frame import read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import Plan
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
    """

    lines: dict[int, list[Item]] = field(default_factory=dict)
    letters: Counter[Place] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


def published(directory: Path, topology: Topology, plan: Plan) -> Published:
    """Read the outbox and the dead letters of a checkpoint directory."""
    made = Published()
    records = list(LogReader(directory / "outbox").records())
    numbers = {sink.path: sink.port - FIRST_SINK_PORT for sink in topology.sinks()}
    for path, number in numbers.items():
        names = [file.name for record in records for file in record.files if file.port == plan.ports[path]]
        values = (value for name in names for value in _values(directory / "outbox" / name))
        made.lines[number] = [item_of(value.decode().rstrip("\n")) for value in values]
    for file in sorted((directory / "dead-letters").glob("*.frames")):
        for letter in map(pb.DeadLetter.FromString, _values(file)):
            place = f"sink{numbers[letter.path]}" if letter.path in numbers else letter.step
            made.letters[place, letter.sequence] += 1
            made.errors.append(f"{letter.path} {letter.sequence}: {letter.code} {letter.error}")
    return made


def _values(file: Path) -> Iterator[bytes]:
    data = file.read_bytes()
    for _, start, _ in split_frames(data):
        yield from read_frame(data, start).values()
