"""Checks before a run that Spark's own checkpoint, the outbox and the journal of a checkpoint belong together.

Each micro-batch is planned (`offsets/N`), published (the outbox's log, which keeps a copy of the plan) and committed
(`commits/N`), in this order. So after a crash the last plan may be published or not, and committed or not. Anything
else is damage. Spark does not sync its files, but the runtime syncs log and journal. So after a loss of power Spark's
newest file may be empty or missing. A plan with a copy in the log is written again. A plan that was never published is
dropped.

In real-time mode output is in the live log (files from which the egress sends output at once) before Spark plans the
end of its micro-batch, and the record in the outbox's log follows the commit. So the outbox's log may lag. A
micro-batch without a record may be processed once more, but is delivered only once.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.durable.directory import Directory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.journal.head import read_committed, read_head
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.recovery import whole_end
from wallaroo_runtime.storage.journal.segment import other_journal
from wallaroo_runtime.storage.outbox.log import Published
from wallaroo_runtime.storage.spark_log import last_batch

NO_OFFSET = "-"


@dataclass
class SparkFiles:
    """The small files of Spark's own checkpoint (plans, commits, id of the query), which must agree with the outbox.

    Attributes:
        directory: The checkpoint.
        folder: Name of Spark's own checkpoint in `directory`.
        published: The last micro-batch in the outbox.
        rescaled: The last micro-batch before a rescale, and the last one that the rescale added; (-1, -1) if never.
        is_whole: Whether the outbox has a record of each micro-batch and its plan.
        written: The last micro-batch that was written to Spark's sinks; -1 if there is none.
        is_live: Whether output is sent while its micro-batch runs, as in real-time mode.
        repairs: Findings (R632) about files that `check` has repaired.
    """

    directory: Directory
    folder: str
    published: Published
    rescaled: tuple[int, int] = (-1, -1)
    is_whole: bool = True
    written: int = -1
    is_live: bool = False
    repairs: list[Diagnostic] = field(default_factory=list)

    def check(self) -> list[Any]:
        """Check that all files belong together. Repair files that a loss of power has damaged.

        Returns:
            The end of the last planned micro-batch for each source; empty if no micro-batch is planned.

        Raises:
            RunError: R698 if the files do not belong together, or an error of the directory.
        """
        planned, committed = self._last("offsets"), self._last("commits")
        if max(planned, committed) < 0:
            self._check_begin()
            self._sweep()
            return []
        self._check_query()
        committed = self._repaired_commits(planned, committed)
        planned = self._repaired_offsets(planned, committed)
        if self.is_live:
            committed = min(committed, planned)
        self._check_order(planned, committed)
        if committed < 0:
            self._sweep()
        return offsets_of(self._read(f"offsets/{planned}")) or []

    def _sweep(self) -> None:
        """Remove the files of a first micro-batch that has no whole plan: Spark begins only in empty folders."""
        whole = set[str]()
        for log in (f"{self.folder}/commits", f"{self.folder}/offsets"):
            names = {f"{log}/{name}" for name in self.directory.names(log)}
            whole = {name for name in names if name.rpartition("/")[2].isdecimal()}
            for name in names - whole - {*map(_checksum, whole)}:
                self.directory.remove(name)
        if not whole:  # no micro-batch is planned
            self.directory.remove(f"{self.folder}/state")

    def repeated(self) -> int:
        """Return the micro-batch whose output was sent, but which is not committed; -1 if there is none."""
        committed = self._last("commits")
        if committed >= 0 and not is_commit(self._read(f"commits/{committed}")):
            committed -= 1
        last = max(self._last_published, self.written)
        return last if last > committed else -1

    def pending(self) -> int:
        """Return the micro-batch that is planned but not committed; -1 if there is none. Change nothing."""
        planned = self._last("offsets")
        return planned if planned > self._last("commits") else -1

    def _last(self, log: str) -> int:
        """Return the last micro-batch in `offsets` or `commits`; -1 if there is none."""
        return last_batch(self.directory.names(f"{self.folder}/{log}"))

    def _read(self, name: str) -> str:
        """Return the text of a file; empty if there is no such file."""
        return (self.directory.read(f"{self.folder}/{name}") or b"").decode("utf-8", "replace")

    def _check_begin(self) -> None:
        """Check the files if Spark has no plan of a micro-batch. Restore the plan of micro-batch 0 from the outbox."""
        if self.published.batch > 0 and self.is_whole:
            expected = f"micro-batch {self.published.batch}, which the outbox has"
            raise self._damaged(name=self.folder, expected=expected, actual="no micro-batch")
        if self.published.batch == 0 and self.is_whole:  # the first plan is lost, and perhaps also the id of the query
            self._check_query()
            self._write("offsets/0", self.published.offsets)
        elif self.directory.read(f"{self.folder}/metadata") is not None and not self._query():
            self._remove("metadata", "no micro-batch was planned; Spark writes it again")

    def _query(self) -> str:
        """Return the id of the query; empty if its file is damaged or missing."""
        try:
            return str(json.loads(self._read("metadata"))["id"])
        except (ValueError, KeyError, TypeError):
            return ""

    def _check_query(self) -> None:
        """Check the id of the query. If its file is damaged, write it again from the outbox."""
        query, known = self._query(), self.published.query
        if not query and known:
            self._write("metadata", json.dumps({"id": known}, separators=(",", ":")))
        elif not query:
            raise self._damaged(name=f"{self.folder}/metadata", expected="the id of the query", actual="none")
        elif known and query != known:
            raise self._damaged(
                name=f"{self.folder}/metadata", expected=f"query {known}, as the outbox has it", actual=f"query {query}"
            )

    @property
    def _last_published(self) -> int:
        """The number of the last published micro-batch, or of the empty one that a change of mode or numbers added."""
        before, after = self.rescaled
        return after if after >= 0 and self.published.batch == before else self.published.batch

    def _repaired_commits(self, planned: int, committed: int) -> int:
        """Return the last committed micro-batch. If the file of its commit is damaged, remove the file first.

        The micro-batch is then processed once more, as if Spark had died before its commit.
        """
        if committed < 0 or is_commit(self._read(f"commits/{committed}")):
            return committed
        is_known = committed == self.published.batch or self.is_live
        if committed != planned or not is_known:
            name = f"{self.folder}/commits/{committed}"
            raise self._damaged(name=name, expected="the commit of a micro-batch", actual="something else")
        self._remove(f"commits/{committed}", f"micro-batch {committed} is processed once more, and published only once")
        return committed - 1 if committed else -1

    def _repaired_offsets(self, planned: int, committed: int) -> int:
        """Return the last planned micro-batch. If its file is damaged, write it again from the outbox, or remove it."""
        known, copy = self._last_published, self.published.offsets
        if copy and known in (planned, planned - 1, planned + 1) and committed >= known - 1:
            self._restore(known, copy)
            planned = max(planned, known)
        text = self._read(f"offsets/{planned}")
        sources = offsets_of(text)
        # A rescale may have changed the number of sources. Its own plan, which is safe on disk, has the new number.
        like = self._read(f"offsets/{known}") if known == self.rescaled[1] else copy
        if sources is not None and len(sources) == len(offsets_of(like) or sources):
            return planned
        name = f"{self.folder}/offsets/{planned}"
        if self.is_live and known < planned:
            if committed == planned:
                self._remove(f"commits/{planned}", f"micro-batch {planned} is processed once more")
            self._remove(f"offsets/{planned}", "what it delivered is not delivered again")
            return planned - 1
        if self.is_whole and planned == known + 1 == committed + 1 and self.written < planned:
            self._remove(f"offsets/{planned}", f"nothing of micro-batch {planned} was published; it is planned again")
            return planned - 1
        raise self._damaged(
            name=name,
            expected="the plan of a micro-batch",
            actual="a file that is not whole" if text else "nothing in it",
        )

    def _restore(self, batch: int, copy: str) -> None:
        """Compare the plan of a micro-batch with the copy in the outbox. If the plan is damaged, write it again."""
        name = f"offsets/{batch}"
        text, is_rescaled = self._read(name), self.rescaled[1] == batch
        if is_rescaled:
            offsets, known = offsets_of(text) or [], offsets_of(copy) or []
            both = min(len(offsets), len(known))  # after a change of mode one of the two plans has only the journal
            is_same = both > 0 and offsets[:both] == known[:both]
        else:
            is_same = text == copy
        if offsets_of(text) is None and not is_rescaled:
            self._write(name, copy)
        elif not is_same:
            raise self._damaged(
                name=f"{self.folder}/{name}", expected="what the outbox has a copy of", actual="another plan"
            )

    def _check_order(self, planned: int, committed: int) -> None:
        """Check the order of planned, published and committed micro-batches; the module's docstring has the rules."""
        if committed not in (planned, planned - 1):
            older, newer = sorted([(planned, "offsets"), (committed, "commits")])
            expected = f"micro-batch {newer[0]} or the one before, as in {newer[1]}"
            raise self._damaged(name=f"{self.folder}/{older[1]}", expected=expected, actual=_shown(older[0]))
        known = self._last_published
        if known > planned:
            expected = f"micro-batch {known}, which the outbox has"
            raise self._damaged(name=f"{self.folder}/offsets", expected=expected, actual=_shown(planned))
        if self.is_whole and known < committed and not self.is_live:
            expected = f"micro-batch {committed}, which Spark has committed"
            raise self._damaged(name="outbox/log", expected=expected, actual=_shown(self.published.batch))

    def _write(self, name: str, text: str) -> None:
        self.directory.remove(_checksum(f"{self.folder}/{name}"))
        self.directory.write(f"{self.folder}/{name}", text.encode())
        self._note_repair(name, "it was written again from the copy in the outbox")

    def _remove(self, name: str, repair: str) -> None:
        self.directory.remove(_checksum(f"{self.folder}/{name}"))
        self.directory.remove(f"{self.folder}/{name}")
        self._note_repair(name, repair)

    def _note_repair(self, name: str, repair: str) -> None:
        finding = Diagnostic.of("R632", path=self.directory, name=f"{self.folder}/{name}", repair=repair)
        self.repairs.append(finding)

    def _damaged(self, name: str, expected: str, actual: str) -> RunError:
        return damaged(self.directory, name, expected, actual)


def damaged(directory: object, name: str, expected: str, actual: str) -> RunError:
    """Return the error that a file does not fit the other files of the checkpoint (R698)."""
    return RunError.of("R698", what=f"checkpoint {directory}", reason=f"{name}: expected {expected}; found {actual}")


def check_journal(directory: Path, journal: str, plan: list[Any]) -> None:
    """Check that the local journal belongs to the checkpoint, and has all input that Spark has planned.

    Args:
        directory: The directory of the journal.
        journal: The id of the journal in `application.json`.
        plan: The end of the last planned micro-batch for each source.

    Raises:
        RunError: R698 if the journal is too short, is another one, or is missing.
    """
    journal_id = JournalReader(directory).id()
    if journal_id is None or f"{journal_id:016x}" != journal:
        raise other_journal(directory, journal, f"{journal_id:016x}" if journal_id else "none")
    positions = [source for source in plan if isinstance(source, Mapping) and "journal" in source]
    for position in positions:
        if position["journal"] != journal:
            raise other_journal(directory, position["journal"], journal)
        end, head, done = int(position["offset"]), read_head(directory), read_committed(directory)
        if head is not None and head.offset < end and (last := whole_end(directory)) < end:
            reason = f"it ends there; the checkpoint has planned to read to {end}"
            raise RunError.of("R698", what=f"journal {directory} at offset {last}", reason=reason)
        if done > end:
            reason = f"all before was processed; Spark's checkpoint has planned to read to {end}"
            raise RunError.of("R698", what=f"journal {directory}/committed at offset {done}", reason=reason)


def check_nothing_left(directory: Directory) -> None:
    """Check that a directory without a record (`application.json`) has no data of a former checkpoint either.

    Raises:
        RunError: R698 if it has data.
    """
    for folder, sign in (("spark", "metadata"), ("journal", "head"), ("outbox", "log"), ("dead-letters", "")):
        if names := directory.names(folder):
            place = f"{folder}/{sign if sign in names else min(names)}"
            raise damaged(directory, "application.json", f"the record of what {place} belongs to", "no such file")


def _shown(batch: int) -> str:
    return f"micro-batch {batch} as the last one" if batch >= 0 else "no micro-batch"


def _checksum(name: str) -> str:
    """Return the name of Hadoop's checksum file for a file. If the file is replaced, this one must be removed."""
    folder, _, last = name.rpartition("/")
    return f"{folder}/.{last}.crc"


def is_commit(text: str) -> bool:
    r"""Say whether a file of `commits`, which marks a micro-batch as committed, is whole.

    Example:
        >>> is_commit('v1\n{"nextBatchWatermarkMs":0}'), is_commit(""), is_commit('v1\n{"next')
        (True, False, False)
    """
    version, _, rest = text.partition("\n")
    try:
        return version.startswith("v") and isinstance(json.loads(rest), Mapping)
    except ValueError:
        return False


def offsets_of(text: str) -> list[Any] | None:
    r"""Return the offset for each source in a file of `offsets`, the plan of a micro-batch; None if it is damaged.

    Example:
        >>> offsets_of('v1\n{"batchTimestampMs":1}\n{"offset": 3}\n-')
        [{'offset': 3}, None]
        >>> offsets_of('v1\n{"batchTimestampMs":1}') is None, offsets_of('v1\n{}\n{"off') is None
        (True, True)
    """
    version, *lines = text.split("\n")
    try:
        if not version.startswith("v") or len(lines) < 2 or not isinstance(json.loads(lines[0]), Mapping):
            return None
        return [None if line == NO_OFFSET else json.loads(line) for line in lines[1:]]
    except ValueError:
        return None
