"""Where the journal is read and output is put."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.staging import StagedFile


class DriverOutput(Protocol):
    """The place where the driver publishes; `Outbox` documents each method."""

    @property
    def name(self) -> str:
        """Name for people: a directory, or the address of an egress."""

    def publish(self, query: str, batch: int, files: Sequence[StagedFile], offsets: str) -> bool:
        """Make the output of a micro-batch count, once."""

    def letters(self) -> int:
        """Return the number of dead letters that were ever published."""

    def published(self) -> int:
        """Return the number of messages that were ever published for sinks."""

    def size(self) -> int:
        """Return the bytes of all files that are not delivered yet."""

    def read_staged(self, file: StagedFile) -> Iterable[bytes]:
        """Yield the frames of a staged file in pieces of whole frames."""


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """Where a journal is.

    Attributes:
        directory: It, when tasks and driver read its files.
        service: The gateway that serves it; None: files are read.
    """

    directory: str = ""
    service: Service | None = None

    def __str__(self) -> str:
        return self.directory if self.service is None else f"{self.service.store} of {self.service.address}"

    def journal_id(self) -> int:
        """Return the id of the journal."""
        return JournalReader(self.directory).end().journal_id if self.service is None else int(self.service.store, 16)


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """Where output goes.

    Attributes:
        staging: Directory of staged files.
        outbox: Directory of the outbox.
        dead_letters: Directory of dead letters.
        service: The egress that takes it all; None: the directories are written.
    """

    staging: str = ""
    outbox: str = ""
    dead_letters: str = ""
    service: Service | None = None

    @classmethod
    def on(cls, checkpoint: Path) -> "OutputPlace":
        """Return the directories of a checkpoint directory."""
        return cls(str(checkpoint / "staging"), str(checkpoint / "outbox"), str(checkpoint / "dead-letters"))

    @staticmethod
    def remove(files: Iterable[StagedFile]) -> None:
        """Remove staged files that are done with; files left by other attempts go when output is opened."""
        for file in files:
            Path(file.path).unlink(missing_ok=True)

    def open(self, ports: Collection[int] | None = None) -> DriverOutput:
        """Return the output of the driver; leftovers of earlier runs are removed from staging.

        Args:
            ports: Of the sinks that there are; what is kept for others is removed. None: of any.

        Raises:
            RunError: R698, it is damaged.
        """
        if self.service is None:
            return Outbox(Path(self.outbox), Path(self.dead_letters), Path(self.staging), ports=ports)
        # Late: a run on files needs no gRPC in the driver.
        from wallaroo_runtime.storage.remote_outbox import RemoteOutbox

        return RemoteOutbox(self.service)
