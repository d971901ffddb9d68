"""A checkpoint of an application that copies its messages, with the runtime's own journal, outbox and record.

Spark's part is played: its few small files are written as Spark does. So a test can stop at any point between two
writes, damage any file, and start again, hundreds of times in a minute.
"""

import copy
import functools
import json
import shutil
from pathlib import Path
from typing import Any

from wallaroo.message.frame import encode_frame, read_frame, split_frames
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.integrity import offsets_of
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.egress.feed import Feed
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import SinkPosition, read_position, write_position
from wallaroo_runtime.storage.outbox.staging import StagingWriter
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"
WORD_COUNT = json.loads((VECTORS / "topologies" / "valid" / "word_count.json").read_bytes())
SEGMENT_BYTES = 200


@functools.cache
def word_count() -> Topology:
    """Return the application; to check its document costs as much as all else of a start."""
    return load_document(copy.deepcopy(WORD_COUNT))


def open_checkpoint(path: Path) -> Checkpoint:
    """Open a checkpoint as a run does."""
    place = HeldDirectory.take(path)
    try:
        return Checkpoint.open(place, word_count(), shuffle_partitions=3, buckets_per_partition=4)
    finally:
        place.release()


class Small:
    """The checkpoint, opened as a run does at its start.

    Args:
        path: The directory.
        query: Id of Spark's query, when the checkpoint is a new one.

    Attributes:
        sink: Port of the sink.
        repairs: What was repaired at the start.

    Raises:
        RunError: As a run's start.
    """

    def __init__(self, path: Path, query: str = "query-1") -> None:
        self.path, self._spark = path, path / "spark"
        checkpoint = open_checkpoint(path)
        self.repairs = [str(finding) for finding in checkpoint.repairs]
        self.sink = checkpoint.manifest.ports.parts["0/sinks/0"]
        self._writer = JournalWriter(path / "journal", SEGMENT_BYTES)
        self._journal = JournalReader(path / "journal")
        checkpoint.record_journal(f"{self._journal.end().journal_id:016x}")
        self._outbox = Outbox(path / "outbox", path / "dead-letters", path / "staging", ports={self.sink})
        for folder in ("offsets", "commits"):
            (self._spark / folder).mkdir(exist_ok=True)
        if not (self._spark / "metadata").exists():
            self._write("metadata", json.dumps({"id": query}))
        self.query = str(json.loads((self._spark / "metadata").read_text())["id"])

    def _write(self, name: str, text: str) -> None:
        (self._spark / name).write_text(text)

    def _last(self, log: str) -> int:
        return max((int(path.name) for path in (self._spark / log).iterdir() if path.name.isdigit()), default=-1)

    def _end_of(self, batch: int) -> Position:
        if batch < 0:
            return Position(0, 0, self._journal.end().journal_id)
        (source,) = offsets_of((self._spark / f"offsets/{batch}").read_text()) or [None]
        return Position(int(source["offset"]), int(source["sequence"]), int(source["journal"], 16))

    def receive(self, messages: list[bytes]) -> None:
        """Take messages; they are safe."""
        self._writer.append(0, len(messages), [b"".join(map(framed, messages))], timestamp_ms=0)
        self._writer.sync()

    @property
    def is_planned(self) -> bool:
        """Whether a micro-batch is planned and not committed."""
        return self._last("offsets") > self._last("commits")

    def plan(self, limit: int) -> bool:
        """Plan the next micro-batch as Spark does; returns whether there is anything to do."""
        begin, batch = self._end_of(self._last("offsets")), self._last("offsets") + 1
        if batch:
            self._journal.commit(begin.offset)
            self._writer.remove_committed(lambda _: None)
        end = self._journal.limit(begin, limit)
        if end == begin:
            return False
        source = {"journal": f"{end.journal_id:016x}", "offset": end.offset, "sequence": end.messages}
        self._write(f"offsets/{batch}", f'v1\n{{"batchTimestampMs":{batch}}}\n{json.dumps(source)}')
        return True

    def publish(self) -> None:
        """Run the planned micro-batch: what it reads is its output."""
        batch = self._last("offsets")
        writer = StagingWriter(str(self.path / "staging"), self.query, batch, 0, 0)
        messages = [
            message
            for data in self._journal.read(self._end_of(batch - 1).offset, self._end_of(batch).offset)
            for _, at, _ in split_frames(data)
            for message in unframed(read_frame(data, at).data)
        ]
        if messages:
            writer.write(self.sink, encode_frame(messages, port=self.sink))
        self._outbox.publish(self.query, batch, writer.finish(), (self._spark / f"offsets/{batch}").read_text())

    def commit(self) -> None:
        """Commit the planned micro-batch."""
        self._write(f"commits/{self._last('offsets')}", 'v1\n{"nextBatchWatermarkMs":0}')

    def deliver(self, pieces: int) -> list[bytes]:
        """Deliver some frames to the sink, and remove what is delivered wholly."""
        position, found = read_position(self.path / "outbox", self.sink), []
        feed = Feed(self.path / "outbox", self.sink, position)
        while pieces and (piece := feed.next()) is not None:
            found += cut(piece.data, piece.lengths)
            position = piece.after
            if piece.finished is not None:
                pieces -= 1
                write_position(self.path / "outbox", self.sink, position, durable=False)
                (self.path / "outbox" / piece.finished.name).unlink()
        feed.close()
        if position != SinkPosition():
            write_position(self.path / "outbox", self.sink, position, durable=False)
        return found

    def finish(self) -> list[bytes]:
        """Go on as the next run does until all is processed and delivered; returns what the sink got in it."""
        if self.is_planned:
            self.publish()
            self.commit()
        while self.plan(1 << 20):
            self.publish()
            self.commit()
        return self.deliver(1 << 30)

    def close(self) -> None:
        """Close the journal: nothing is written to the directory then."""
        self._writer.close()


def framed(message: bytes) -> bytes:
    """Put two bytes of length before a message."""
    return len(message).to_bytes(2, "big") + message


def unframed(data: bytes) -> list[bytes]:
    """Read what `framed` gave."""
    found, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 2], "big")
        found.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    return found


def cut(data: bytes, lengths: Any) -> list[bytes]:
    """Cut messages of known lengths."""
    found, at = [], 0
    for length in lengths:
        found.append(data[at : at + length])
        at += length
    return found


def files_of(path: Path) -> list[str]:
    """Return the files of a checkpoint that a run needs again; not what processes say of themselves while they live."""
    names = (str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    return sorted(name for name in names if name not in ("driver.lock", "journal/lock") and "staging" not in name)


def copied(path: Path, to: Path) -> Path:
    """Copy a checkpoint."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(path, to)
    return to
