"""Staging: files with the output of one task attempt, before Spark has decided which attempt counts."""

import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wallaroo.message.frame import check_frame
from wallaroo_runtime.durable.file import disk_told, private

_BUFFER_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class StagedFile:
    """Describes a finished staging file. The task sends this description to the driver, for publication.

    Attributes:
        port: Port of the sink, or 65535 for dead letters.
        path: Absolute path of the file.
        bytes: Length of the file.
        crc32: Checksum of all bytes of the file.
        messages: Number of messages in the file.
        partition: Spark's partition that wrote the file. Files are delivered in the order of their partitions.
    """

    port: int
    path: str
    bytes: int
    crc32: int
    messages: int
    partition: int


class _OpenFile:
    """A staging file that is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = open(  # noqa: SIM115 - lives as long as its writer
            path, "wb", buffering=_BUFFER_BYTES, opener=private
        )
        self.bytes = self.crc32 = self.messages = 0

    def write(self, frame: bytes) -> None:
        self.file.write(frame)
        self.bytes += len(frame)
        self.crc32 = zlib.crc32(frame, self.crc32)
        self.messages += check_frame(frame).count


class StagingWriter:
    """Writes the frames of one task attempt: one file for each port, created with the first frame.

    Args:
        directory: The staging directory; created if it does not exist.
        query: Id of the query: letters, digits, `.`, `_`, `-`.
        batch: Id of the micro-batch.
        task_attempt: Spark's task attempt id; no two attempts may share a name.

    Example:
        >>> from tempfile import mkdtemp
        >>> from wallaroo.message.frame import encode_frame
        >>> writer = StagingWriter(Path(mkdtemp()), "q", batch=7, partition=0, task_attempt=12)
        >>> writer.write(3, encode_frame([b"a", b"b"], port=3))
        >>> [(file.port, file.messages, Path(file.path).name) for file in writer.finish()]
        [(3, 2, 'q-7-0-12-3.frames')]
    """

    def __init__(self, directory: Path | str, query: str, batch: int, partition: int, task_attempt: int) -> None:
        self._directory = Path(directory).absolute()
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._prefix = f"{query}-{batch}-{partition}-{task_attempt}"
        self._partition = partition
        self._files: dict[int, _OpenFile] = {}

    def write(self, port: int, frame: bytes) -> None:
        """Append one whole frame to the file of a port.

        Raises:
            FrameError: The frame is damaged.
            RunError: R626 if the disk takes nothing more.
            OSError: The file cannot be written.
        """
        with disk_told(self._directory):
            if port not in self._files:
                self._files[port] = _OpenFile(self._directory / f"{self._prefix}-{port}.frames")
            self._files[port].write(frame)

    def finish(self) -> list[StagedFile]:
        """Sync and close the files, and return their descriptors, to be published. Nothing may be written afterwards.

        Raises:
            RunError: R626 if the disk takes nothing more; `abort` then removes the files.
            OSError: A file cannot be written; `abort` then removes the files.
        """
        for staged in self._files.values():
            with disk_told(self._directory):
                staged.file.flush()
                os.fsync(staged.file.fileno())
                staged.file.close()
        return [
            StagedFile(port, str(staged.path), staged.bytes, staged.crc32, staged.messages, self._partition)
            for port, staged in sorted(self._files.items())
        ]

    def abort(self) -> None:
        """Close and remove the files, if there are any."""
        for staged in self._files.values():
            # The buffered bytes may find no room again, but the file is removed in any case.
            with suppress(OSError):
                staged.file.close()
            staged.path.unlink(missing_ok=True)
        self._files.clear()
