"""How far a query has come: what a checkpoint of Spark says of it, and what a running one has counted."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from wallaroo_runtime.spark.batch_log import last_batch, last_commit
from wallaroo_runtime.spark.hadoop import HadoopDirectory
from wallaroo_runtime.storage.record_count import RecordCount


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a query has come.

    Attributes:
        messages_in: Messages of the journal that are processed, since the checkpoint began.
        messages_out: Messages for sinks, since this run began.
        dead_letters: Dead letters, since the checkpoint began.
        batches: Micro-batches, since this run began.
        offsets: Offset in each journal up to which everything is processed; empty: nothing is known yet.
        bytes_by_file: Bytes of journals that tasks have read from files, since this run began.
        bytes_by_grpc: Likewise, from gateways.
        records: Messages of sources that Spark reads, and of sinks that it writes.
        endings: Processes of workers that ended by themselves, by executor and number, in words.
        dead_letters_before: Those of `dead_letters` that were there when this run began.
        visits: Visits, since this run began.
        visited: Keys that they ran for.
    """

    messages_in: int = 0
    messages_out: int = 0
    dead_letters: int = 0
    batches: int = 0
    offsets: tuple[int, ...] = ()
    bytes_by_file: int = 0
    bytes_by_grpc: int = 0
    records: RecordCount = field(default_factory=RecordCount)
    endings: Mapping[str, str] = field(default_factory=dict)
    dead_letters_before: int = 0
    visits: int = 0
    visited: int = 0

    @property
    def offset(self) -> int:
        """The sum of `offsets`."""
        return sum(self.offsets)

    def reached(self, offsets: Iterable[Any]) -> "Progress":
        """Return the progress after a micro-batch that ended at these offsets of Spark's sources."""
        of_journals = [offset for offset in offsets if isinstance(offset, Mapping) and "journal" in offset]
        return replace(
            self,
            messages_in=sum(int(offset["sequence"]) for offset in of_journals),
            offsets=tuple(int(offset["offset"]) for offset in of_journals),
        )


def committed_progress(checkpoint: Path) -> Progress:
    """Return how far the last run of a checkpoint came, without Spark; all zero for a new one.

    Args:
        checkpoint: Spark's own, a directory.
    """
    done = last_commit(checkpoint)
    return Progress() if done < 0 else _progress_at((checkpoint / "offsets" / str(done)).read_bytes())


def _progress_at(offsets: bytes) -> Progress:
    _version, _metadata, *lines = offsets.decode("utf-8").splitlines()
    return Progress().reached(json.loads(line) for line in lines if line != "-")


def past_progress(session: SparkSession, checkpoint: str) -> Progress:
    """Return what `committed_progress` does, of a checkpoint in any file system."""
    if "://" not in checkpoint:
        return committed_progress(Path(checkpoint))
    return progress_in(HadoopDirectory(session, checkpoint))


class Files(Protocol):
    """A directory in any file system."""

    def names(self, name: str) -> list[str]:
        """Return the names in a directory; none when there is no such directory."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None when there is none."""


def progress_in(files: Files, folder: str = "") -> Progress:
    """Return what `committed_progress` does, of a checkpoint in any file system.

    Args:
        files: The directory.
        folder: Of Spark's checkpoint in it, with a slash at its end.
    """
    done = last_batch(files.names(f"{folder}commits"))
    offsets = files.read(f"{folder}offsets/{done}") if done >= 0 else None
    return Progress() if offsets is None else _progress_at(offsets)
