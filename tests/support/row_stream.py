"""Rows in micro-batches, some of which are tried twice, and the times by which a plain reference runs them."""

import json
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException

from support import row_windows

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
BEGIN_MS = 1_767_225_600_000  # of 2026
SPAN = 10  # sequences from one row to the next, so that ticks have room
END_MS, SILENCE_MS = 1 << 60, 1 << 50


def ms_of(time: datetime) -> int:
    return (time - EPOCH) // timedelta(milliseconds=1)


def parts(rows: list[Any], size: int = 30) -> list[list[Any]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def streamed(session: Any, folder: Path, batches: Sequence[Sequence[Any]], schema: str = row_windows.SCHEMA) -> Any:
    """Return rows as a stream with a micro-batch for each part."""
    for rows in batches:
        session.createDataFrame(rows, schema).coalesce(2).write.mode("append").parquet(str(folder / "in"))
        time.sleep(0.01)  # files are read in the order of their times
    return stream_of(session, folder, len(list((folder / "in").glob("*.parquet"))) // len(batches), schema)


def stream_of(session: Any, folder: Path, files: int, schema: str = row_windows.SCHEMA) -> Any:
    reader = session.readStream.schema(schema).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder / "in"))


class Unlucky(Exception):
    """Ends a query in the middle of a micro-batch."""


class Writer:
    """Takes the rows of micro-batches; the first try of some of them fails after it was computed.

    Attributes:
        rows: By number of the micro-batch.
    """

    def __init__(self, fails_at: Sequence[int]) -> None:
        self.fails_at, self.rows = set(fails_at), dict[int, list[Any]]()

    def __call__(self, rows: Any, number: int) -> None:
        found = rows.collect()
        if number in self.fails_at:
            self.fails_at.remove(number)
            raise Unlucky
        self.rows[number] = found

    def run(self, frame: Any, folder: Path) -> None:
        """Process all that is there, as often as it takes."""
        while True:
            writer = frame.writeStream.foreachBatch(self).option("checkpointLocation", str(folder / "checkpoint"))
            query = writer.trigger(availableNow=True).start()
            try:
                query.awaitTermination()
                return
            except StreamingQueryException as error:
                assert "Unlucky" in str(error), error

    def all(self) -> list[Any]:
        return [row for number in sorted(self.rows) for row in self.rows[number]]

    def given(self, output: str) -> list[Any]:
        """Return the rows of a sink."""
        return [json.loads(row["value"]) for row in self.all() if row["output"] == output]


def ends(latest: int, levels: int) -> list[dict[str, Any]]:
    """Return the ticks at the end of a batch."""
    times = (latest, END_MS, END_MS + SILENCE_MS)
    return [
        {"sequence": (1 << 60) + len(times) * level + number, "tick": time, "level": level}
        for level in range(levels)
        for number, time in enumerate(times)
    ]


def watermarks(batches: Sequence[Sequence[int]], levels: int, delay_ms: int) -> list[dict[str, Any]]:
    """Return the ticks after each micro-batch, of the times of whose rows are given."""
    found, done, latest = list[dict[str, Any]](), 0, -END_MS
    for times in batches:
        latest, done = max(latest, *times), done + len(times)
        begin = SPAN * (done - 1) + 1
        found += [{"sequence": begin + level, "tick": latest - delay_ms, "level": level} for level in range(levels)]
    return found


def by_clock(
    folder: Path, numbers: Sequence[int], batches: Sequence[Sequence[Any]]
) -> list[tuple[int, int, list[Any]]]:
    """Return of each micro-batch of a query its tick, the time at which its rows arrive, and these.

    Args:
        folder: Where the query has its checkpoint.
        numbers: Of the micro-batches.
        batches: The rows of each file, in the order in which they are read.
    """
    found, read = list[tuple[int, int, list[Any]]](), -1
    for number in sorted(numbers):
        meta, tick, files = (folder / "checkpoint" / "offsets" / str(number)).read_text().splitlines()[1:]
        now, upto = json.loads(meta)["batchTimestampMs"], -1 if files == "-" else json.loads(files)["logOffset"]
        assert int(tick) <= now
        found.append((int(tick), now, list(batches[upto]) if upto > read else []))
        read = upto
    assert read == len(batches) - 1
    return found
