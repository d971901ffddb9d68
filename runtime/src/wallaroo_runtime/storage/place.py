"""Declares where a run has its journal and its output: in directories, or at a gateway and an egress."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.staging import StagedFile

if TYPE_CHECKING:
    from wallaroo_runtime.storage.remote_outbox import RemoteOutbox


DriverOutput: TypeAlias = "Outbox | RemoteOutbox"  # the output as the driver uses it


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """The place of a run's journal: a directory, or a gateway that serves the journal.

    Attributes:
        directory: Directory of the journal, if tasks and driver read its files.
        service: The gateway that serves the journal; None if its files are read.
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
    """The place of a run's output: directories that the driver writes, or an egress.

    Attributes:
        staging: Directory of staged files.
        outbox: Directory of the outbox.
        dead_letters: Directory of dead letters.
        service: The egress that takes all output; None if it is written into the directories.
    """

    staging: str = ""
    outbox: str = ""
    dead_letters: str = ""
    service: Service | None = None

    @classmethod
    def on(cls, checkpoint: Path) -> "OutputPlace":
        """Return the place of output in a checkpoint directory."""
        return cls(str(checkpoint / "staging"), str(checkpoint / "outbox"), str(checkpoint / "dead-letters"))

    @staticmethod
    def remove(files: Iterable[StagedFile]) -> None:
        """Remove these staged files, which are no longer needed. `open` later removes files of failed attempts."""
        for file in files:
            Path(file.path).unlink(missing_ok=True)

    def open(self, ports: Collection[int] | None = None) -> DriverOutput:
        """Open the outbox for the driver, which publishes to it, and remove staged files of earlier runs.

        Args:
            ports: Ports of the existing sinks; output that is kept for other ports is removed. None removes nothing.

        Raises:
            RunError: R698 if the output is damaged.
        """
        if self.service is None:
            return Outbox(Path(self.outbox), Path(self.dead_letters), Path(self.staging), ports=ports)
        # Imported late: a run on files needs no gRPC in the driver.
        from wallaroo_runtime.storage.remote_outbox import RemoteOutbox

        return RemoteOutbox(self.service)
