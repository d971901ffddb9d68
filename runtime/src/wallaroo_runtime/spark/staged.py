"""Files with the outputs of one task attempt."""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from wallaroo_runtime.spark.level import Attempt
from wallaroo_runtime.spark.row import FrameHead, StagedRow


@dataclass(slots=True)
class _File:
    path: Path
    file: BinaryIO
    bytes: int = 0
    crc32: int = 0
    messages: int = 0


class Staged:
    """Outputs of one task attempt, a file per port."""

    def __init__(self, directory: str, attempt: Attempt) -> None:
        self.directory, self.attempt = Path(directory), attempt
        self._files: dict[int, _File] = {}

    def add(self, port: int, frame: bytes) -> None:
        a = self.attempt
        f = self._files.get(port)
        if f is None:
            path = self.directory / f"{a.query}-{a.batch}-{a.partition}-{a.stage}-{a.attempt}-{port}.frames"
            f = self._files[port] = _File(path, path.open("wb", buffering=0))
        f.file.write(frame)
        f.bytes += len(frame)
        f.crc32 = zlib.crc32(frame, f.crc32)
        f.messages += FrameHead.of(frame).count

    def rows(self) -> list[StagedRow]:
        """Return what has been written so far, by file."""
        a = self.attempt
        return [
            StagedRow(a.query, a.partition, port, str(f.path), f.bytes, f.crc32, f.messages)
            for port, f in self._files.items()
        ]

    def close(self) -> None:
        """Make the files durable."""
        for f in self._files.values():
            os.fsync(f.file.fileno())
            f.file.close()

    def abandon(self) -> None:
        """Remove the files."""
        for f in self._files.values():
            f.file.close()
            f.path.unlink(missing_ok=True)

    def __enter__(self) -> "Staged":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
