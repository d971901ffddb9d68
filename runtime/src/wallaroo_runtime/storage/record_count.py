"""Messages of Spark's own sources and sinks since a checkpoint began: `records.json` of the checkpoint.

Gateway and egress count theirs themselves. Offsets of Kafka would not do: markers of transactions have some, too.
"""

from dataclasses import dataclass
from typing import Protocol

from wallaroo_runtime.durable.line import pack_line, unpack_line
from wallaroo_runtime.errors import RunError

NAME = "records.json"


class Files(Protocol):
    """A directory in any file system."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None when there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Give a file this content; a reader sees the old content or the new one."""


@dataclass(slots=True)
class RecordCount:
    """Counts each micro-batch once, also one that is repeated after a kill.

    Attributes:
        received: Messages that sources have given since the checkpoint began.
        written: Messages that sinks have got since then.
        refused: Messages that became dead letters since then, because a sink never takes them.
        received_before: Those of `received` that earlier runs had.
        written_before: Likewise of `written`.
        refused_before: Likewise of `refused`.
        is_least: Whether there may have been more: a version that did not count began the checkpoint.
    """

    directory: Files | None = None
    received: int = 0
    written: int = 0
    is_least: bool = False
    received_before: int = 0
    written_before: int = 0
    refused: int = 0
    refused_before: int = 0
    _query: str = ""
    _batch: int = -1

    @classmethod
    def open(cls, directory: Files, *, is_new: bool) -> "RecordCount":
        """Read what earlier runs have counted.

        Args:
            directory: The checkpoint.
            is_new: Whether no micro-batch is committed that could have had messages.

        Raises:
            RunError: R698, the file is damaged; what the directory raises.
        """
        content = directory.read(NAME)
        if content is None:
            begun = cls(directory, is_least=not is_new)
            begun._store()
            return begun
        value = unpack_line(content.rstrip(b"\n")) or {}
        try:
            received, written = int(value["received"]), int(value["written"])
            refused = int(value.get("refused", 0))
            least, query, batch = bool(value["is_least"]), str(value["query"]), int(value["batch"])
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{error} is missing, or it does not fit its checksum"
            raise RunError.of("R698", what=f"{directory}/{NAME}", reason=reason) from error
        return cls(directory, received, written, least, received, written, refused, refused, query, batch)

    def add(self, query: str, batch: int, received: int, written: int, refused: int = 0) -> None:
        """Count a micro-batch that is published; to be called before Spark commits it."""
        if query == self._query and batch <= self._batch:
            return
        if not (received or written or refused):
            return
        self._query, self._batch = query, batch
        self.received, self.written = self.received + received, self.written + written
        self.refused += refused
        self._store()

    def _store(self) -> None:
        if self.directory is None:
            return
        numbers = {"received": self.received, "written": self.written, "refused": self.refused}
        batch = {"query": self._query, "batch": self._batch, "is_least": self.is_least}
        self.directory.write(NAME, pack_line({**batch, **numbers}))
