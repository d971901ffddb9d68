"""The outbox: published output, in the order in which it must be delivered."""

import os
import re
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from wallaroo.diagnostic.fault import reach
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.durable.file import replace_file, sync_directory
from wallaroo_runtime.durable.record import pack_line
from wallaroo_runtime.storage.journal.segment import undone, write_all
from wallaroo_runtime.storage.outbox.live import FOLDER, live_segments
from wallaroo_runtime.storage.outbox.live_state import read_last, safe_live
from wallaroo_runtime.storage.outbox.log import (
    LOG_NAME,
    LogReader,
    OutboxFile,
    OutboxRecord,
    Published,
    cut_delivered,
    damaged,
)
from wallaroo_runtime.storage.outbox.position import begin_position, read_position
from wallaroo_runtime.storage.outbox.staging import StagedFile

COMPACT_BYTES = 1024 * 1024
_STAGED = re.compile(r"(.+)-(\d+)-\d+-\d+-\d+\.frames")


class Outbox:
    """Publishes the staged files of micro-batches, each micro-batch once. One process at a time may do so.

    Args:
        directory: The outbox; created if it does not exist.
        dead_letters: Directory of the files of port 65535.
        staging: The staging directory, in which leftovers of earlier runs are removed now; None removes nothing.
        ports: Ports of the existing sinks; output that is kept for other ports is removed. None removes nothing.
        compact_bytes: A longer log is cut if its beginning is delivered.

    Raises:
        RunError: R698 if the log is damaged.
    """

    def __init__(
        self,
        directory: Path | str,
        dead_letters: Path | str,
        staging: Path | str | None = None,
        *,
        ports: Collection[int] | None = None,
        compact_bytes: int = COMPACT_BYTES,
    ) -> None:
        self.directory, self.dead_letters = Path(directory), Path(dead_letters)
        self._compact_bytes, self._ports = compact_bytes, ports
        for folder in (self.directory, self.dead_letters):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._log = self.directory / LOG_NAME
        self._cut_torn_line()
        reader = LogReader(self.directory)
        self._waiting: dict[int, deque[tuple[int, int, int]]] = {}  # by port: record, file's index, bytes
        self._size = 0
        self._is_clean = False  # False while a failed publication may have left dead letters
        known: set[str] = set()
        for record in reader.records():
            known.update(file.name for file in record.files if self._has_sink(file.port))
            self._await(record)
        reader.close()
        self._base = reader.base
        self._compact_at = max(compact_bytes, self._log.stat().st_size)
        self._remove_unknown(known)
        published = self._base.messages + read_last(self.directory).state.messages
        for port in filter(lambda port: not self._has_sink(port), published):
            (self.directory / f"open-{port}").unlink(missing_ok=True)  # totals still need its position
        for path in Path(staging).glob("*.frames") if staging is not None else ():
            path.unlink(missing_ok=True)

    @property
    def name(self) -> str:
        """The outbox's name in findings: its directory."""
        return str(self.directory)

    @staticmethod
    def read_staged(file: StagedFile) -> Iterator[bytes]:
        """Yield the content of a staged file."""
        yield Path(file.path).read_bytes()

    def last(self) -> Published:
        """Return the last micro-batch that was published."""
        return Published.of(self._base)

    def letters(self) -> int:
        """Return the number of dead letters published since the outbox began."""
        return self.messages().get(DEAD_LETTER_PORT, 0)

    def recorded(self) -> Counter[int]:
        """Return the number of messages of each port in the records of the log, without the live log."""
        return Counter(self._base.messages)

    def published(self) -> int:
        """Return the number of messages published for sinks since the outbox began."""
        return sum(self.messages().values()) - self.letters()

    def messages(self) -> dict[int, int]:
        """Return the number of messages published since the outbox began, by port. Dead letters have port 65535."""
        return dict(self._base.messages + read_last(self.directory).state.messages)

    def publish(self, query: str, batch: int, files: Sequence[StagedFile], offsets: str = "") -> bool:
        """Publish the output of a micro-batch: all of it, in partition order, or nothing.

        A batch that was published before, or is older than a published batch of its query, is not published again. Its
        files are removed. A batch without output leaves a record, too, so that the log has the last micro-batch.

        Args:
            query: Id of Spark's query.
            batch: Number of the micro-batch.
            files: Files that tasks have staged.
            offsets: Spark's plan of the micro-batch, from its checkpoint; empty if it is not known.

        Returns:
            Whether the batch was new.

        Raises:
            RunError: R698 if a staged file is missing or has another length; nothing was published then.
            OSError: The disk failed; the caller must publish the same batch again.
        """
        if batch <= self._base.batches.get(query, -1):
            self._remove_staged(query, batch, files)
            return False
        moves = self._moves(query, batch, files)
        for source, _, size in moves:
            self._check(source, size)
        self._remove_stray(query, batch, {target for _, target, _ in moves})
        for source, target, _ in moves:
            # The staged file stays until the record is written, so that a failed publication can be repeated.
            target.unlink(missing_ok=True)
            target.hardlink_to(source)
        for folder in {target.parent for _, target, _ in moves}:
            sync_directory(folder)
        named = [
            OutboxFile(file.port, file.partition, target.name, file.bytes, file.messages, file.crc32)
            for file, (_, target, _) in zip(self._ordered(files), moves, strict=True)
        ]
        reach("driver.before_record")
        for port in {file.port for file in named} - {DEAD_LETTER_PORT, *self._base.messages}:
            begin_position(self.directory, port)
        if named or offsets:
            live = safe_live(self.directory)
            self._append(OutboxRecord(self._base.number, query, batch, tuple(named), offsets, live))
        self._is_clean = True
        reach("driver.after_publish")
        self._remove_staged(query, batch, files)
        self._compact()
        return True

    def size(self) -> int:
        """Return the total size of the files that are not delivered yet."""
        for port, waiting in self._waiting.items():
            at = read_position(self.directory, port)
            while waiting and waiting[0][:2] < (at.record, at.file):
                self._size -= waiting.popleft()[2]
        return self._size

    def _has_sink(self, port: int) -> bool:
        return self._ports is None or port in self._ports

    def _await(self, record: OutboxRecord) -> None:
        """Note that the files of a record wait for sinks."""
        for index, file in enumerate(record.files):
            if file.port != DEAD_LETTER_PORT and self._has_sink(file.port):
                self._waiting.setdefault(file.port, deque()).append((record.number, index, file.bytes))
                self._size += file.bytes

    @staticmethod
    def _ordered(files: Sequence[StagedFile]) -> list[StagedFile]:
        return sorted(files, key=lambda file: (file.partition, file.port, file.path))

    def _moves(self, query: str, batch: int, files: Sequence[StagedFile]) -> list[tuple[Path, Path, int]]:
        moves: list[tuple[Path, Path, int]] = []
        names: set[Path] = set()
        for file in self._ordered(files):
            dead = file.port == DEAD_LETTER_PORT
            folder = self.dead_letters if dead else self.directory
            stem = f"{query}-{batch}-{file.partition}" + ("" if dead else f"-{file.port}")
            target, again = folder / f"{stem}.frames", 1
            while target in names:
                target, again = folder / f"{stem}-{again}.frames", again + 1
            names.add(target)
            moves.append((Path(file.path), target, file.bytes))
        return moves

    def _check(self, path: Path, size: int) -> None:
        try:
            actual = path.stat().st_size
        except FileNotFoundError:
            raise damaged(self.directory, f"staged file {path} is missing") from None
        if actual != size:
            raise damaged(self.directory, f"staged file {path} has {actual} bytes; expected {size}")

    def _append(self, record: OutboxRecord) -> None:
        files = list(map(asdict, record.files))
        value = {"query": record.query, "batch": record.batch, "files": files, "offsets": record.offsets}
        line = pack_line(value | ({"live": record.live} if record.live else {}))
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            start = os.fstat(descriptor).st_size
            with undone(descriptor, start):
                write_all(descriptor, line, start)
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._base.add(record)
        self._await(record)

    def _cut_torn_line(self) -> None:
        descriptor = os.open(self._log, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            end = os.fstat(descriptor).st_size
            whole, block = end, b""
            while whole > 0 and b"\n" not in block:
                start = max(0, whole - 65536)
                block = os.pread(descriptor, whole - start, start)
                whole = start + block.rfind(b"\n") + 1 if b"\n" in block else start
            if whole < end:
                os.ftruncate(descriptor, whole)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(self.directory)

    def _remove_unknown(self, known: set[str]) -> None:
        """Remove files that wait for no sink: of a failed publication, or of sinks that no longer exist."""
        for path in self.directory.glob("*.frames"):
            if path.name not in known:
                path.unlink()

    def _remove_stray(self, query: str, batch: int, targets: Collection[Path]) -> None:
        """Remove dead letters of a failed publication of this batch, because a changed program may make others.

        Real-time mode stages nothing, and its files of dead letters may have such names, too: they must stay.
        """
        if not self._is_clean and not live_segments(self.directory / FOLDER):
            for path in self.dead_letters.glob(f"{query}-{batch}-*.frames"):
                if path not in targets:
                    path.unlink(missing_ok=True)
        self._is_clean = False

    @staticmethod
    def _remove_staged(query: str, batch: int, files: Sequence[StagedFile]) -> None:
        """Remove the files of all attempts of this batch and of earlier batches from staging."""
        for folder in {Path(file.path).parent for file in files}:
            for path in folder.glob("*.frames"):
                match = _STAGED.fullmatch(path.name)
                if match and match[1] == query and int(match[2]) <= batch:
                    path.unlink(missing_ok=True)

    def _compact(self) -> None:
        """Remove the first records, whose files are all delivered, from the log if that halves the log."""
        if self._log.stat().st_size < self._compact_at:
            return
        ports = set(self._base.messages) - {DEAD_LETTER_PORT}
        needed = dict.fromkeys(ports, self._base.number)
        for port in filter(self._has_sink, ports):
            needed[port] = read_position(self.directory, port).record
        content = cut_delivered(self.directory, needed)
        if content is not None:
            replace_file(self._log, content, durable=True)
        # The next try comes when the log has doubled. So, while a sink is away, not every publication reads the log.
        self._compact_at = max(self._compact_bytes, 2 * self._log.stat().st_size)
