"""Records of topics that are not processed: also those of the micro-batch that runs; Spark reports it at its end."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.spark.offset_log import OffsetLog
from wallaroo_runtime.spark.query import RunningQuery
from wallaroo_runtime.storage.progress import Progress

JOURNAL = '{"journal":"0f","offset":0,"sequence":0}'
COUNTS = st.lists(st.integers(0, 9), min_size=3, max_size=3)


class Spark:
    """Writes what Spark does of a query with a journal and a topic of three partitions."""

    def __init__(self, folder: Path, begin: list[int]) -> None:
        self.folder, self.end, self.report = folder, begin, dict[str, Any]()
        for name in ("offsets", "sources/1"):
            (folder / name).mkdir(parents=True)
        (folder / "sources" / "1" / "0").write_text(f"\0v1\n{self.text(begin)}")
        self.gate = SimpleNamespace(batch=-1, first=0)
        self.offset_log = OffsetLog(None, str(folder))  # type: ignore[arg-type]

    @staticmethod
    def text(offsets: list[int]) -> str:
        return json.dumps({"clicks": {str(number): offset for number, offset in enumerate(offsets)}})

    def begin(self, end: list[int]) -> None:
        self.gate.batch += 1
        (self.folder / "offsets" / str(self.gate.batch)).write_text(f"v1\n{{}}\n{JOURNAL}\n{self.text(end)}")

    def commit(self, end: list[int], latest: list[int]) -> None:
        self.end = end
        self.report = {
            "batchId": self.gate.batch,
            "sources": [{}, {"endOffset": self.text(end), "latestOffset": self.text(latest)}],
        }

    def unread(self, past: Mapping[str, Mapping[int, int]]) -> int | None:
        query = SimpleNamespace(
            _record_sources=1,
            _is_stopped=False,
            _journals=(None,),
            _gate=self.gate,
            _offset_log=self.offset_log,
            _progress=Progress(topics=past),
        )
        return RunningQuery._unread(query, self.report or None)  # type: ignore[arg-type]


@given(COUNTS, st.lists(st.tuples(COUNTS, COUNTS), max_size=5), st.booleans())
def test_what_a_micro_batch_has_read_is_unread_until_it_is_done(
    begin: list[int], batches: list[tuple[list[int], list[int]]], continues: bool
) -> None:
    with TemporaryDirectory() as name:
        spark, past = Spark(Path(name), begin), {"clicks": dict(enumerate(begin))} if continues else {}
        assert spark.unread(past) is None
        for more, later in batches:
            end = [one + other for one, other in zip(spark.end, more, strict=True)]
            spark.begin(end)
            assert (spark.unread(past) or 0) >= sum(more)
            spark.commit(end, [one + other for one, other in zip(end, later, strict=True)])
            is_unknown = spark.gate.batch == 0 and not any(later)  # a repeated micro-batch looks like this
            assert spark.unread(past) == (None if is_unknown else sum(later))


def test_where_a_topic_begins_that_nothing_says_is_not_guessed(tmp_path: Path) -> None:
    spark = Spark(tmp_path, [5, 5, 5])
    (tmp_path / "sources" / "1" / "0").unlink()
    spark.begin([9, 9, 9])
    assert spark.unread({}) is None


def test_offsets_of_a_micro_batch_that_are_gone_are_no_empty_text(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="offsets/7"):
        OffsetLog(None, str(tmp_path)).offsets(7)  # type: ignore[arg-type]
