"""What is kept for a bucket, without Spark: versions, deltas, snapshots, order of rows, descriptors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from wallaroo.message.frame import encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import Node, NodeKind, Stage
from wallaroo_runtime.spark.publish import longest
from wallaroo_runtime.spark.task import state as state_module
from wallaroo_runtime.spark.task.level import Attempt, Level
from wallaroo_runtime.spark.task.row import DATA, DONE
from wallaroo_runtime.spark.task.state import BucketProcessor, to_signed, to_unsigned
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.worker.channel import WorkerChannel
from wallaroo_runtime.worker.compaction import SMALL_LOG_BYTES, compaction_ratio
from wallaroo_runtime.worker.owner_process import Owner
from wallaroo_runtime.worker.session import BucketResult, Version
from wallaroo_runtime.worker.spec import WorkerSpec

pytestmark = pytest.mark.slow
COUNT = Node("0/steps/1", NodeKind.STATE_COMPUTATION, (), 1, "counts", 1)
SINK = Node("0/sinks/0", NodeKind.SINK, ("0/steps/1",), 2)
IDS = (10, 11, 12, 13)


@pytest.fixture
def processor(
    plain_spec: WorkerSpec, executor: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BucketProcessor]:
    """Give the processor of a level, in a task that is always the same one."""
    stage = Stage("s1", "main", (COUNT, SINK), len(IDS))
    output = OutputPlace(str(tmp_path))
    level = Level("counts", 1, (stage,), {"main": plain_spec}, IDS, frozenset(), True, (), output)
    monkeypatch.setattr(Attempt, "current", lambda: Attempt("q", 0, 1, 5, 9))
    monkeypatch.setattr(state_module, "WorkerChannel", lambda spec: WorkerChannel(spec, executor))
    found = BucketProcessor(level)
    yield found
    found.close()


def data_row(words: list[str], sequence: int, ordinal: int = 0) -> Row:
    """Return a row with words of one letter."""
    values = [word.encode() for word in words]
    frame = encode_frame(
        values, port=1, encoding=16, sequence=sequence, keys=[values[0][:1]], key_indexes=[0] * len(words)
    )
    return Row(bucket=11, sequence=sequence, ordinal=ordinal, kind=DATA, task=4, payload=frame)


def staged_lines(rows: list[Row]) -> list[str]:
    """Return what was staged, without the random part."""
    (row,) = [row for row in rows if row["port"] == 2]
    data, lines = Path(row["path"]).read_bytes(), []
    at = 0
    while at < len(data):
        frame = read_frame(data, at)
        lines += [value.decode().rpartition(" ")[0] for value in frame.values()]
        at += 40 + frame.header.body_bytes
    return lines


def test_rows_are_put_in_order_and_the_version_moves(processor: BucketProcessor) -> None:
    tester = TwsTester(processor)
    rows = [data_row(["ac"], 7, 1), data_row(["ab"], 7, 0), data_row(["aa", "ab"], 3)]
    found = tester.test(11, rows)
    processor.close()
    assert staged_lines(found) == ["aa => 1", "ab => 1", "ab => 2", "ac => 1"]
    counter, nonce, snapshot, delta = tester.peekValueState("version_s1", 11)
    assert (counter, delta) == (1, 0)
    assert nonce != 0
    assert snapshot == sum(len(entry) for (entry,) in tester.peekListState("log_s1", 11))
    tester.test(11, [data_row(["ad"], 9)])
    processor.close()
    counter, _, first, delta = tester.peekValueState("version_s1", 11)
    assert (counter, first) == (2, snapshot)
    assert snapshot + delta == sum(len(entry) for (entry,) in tester.peekListState("log_s1", 11))


def test_deltas_become_a_snapshot_when_they_outweigh_it(processor: BucketProcessor) -> None:
    tester = TwsTester(processor)
    tester.test(11, [data_row(["aa"], 0)])
    version = tester.peekValueState("version_s1", 11)
    tester.updateValueState("version_s1", 11, (*version[:2], 0, SMALL_LOG_BYTES + 1))
    tester.test(11, [data_row(["ab"], 1)])
    counter, _, snapshot, delta = tester.peekValueState("version_s1", 11)
    entries = tester.peekListState("log_s1", 11)
    assert (counter, delta, len(entries)) == (2, 0, 1)
    assert snapshot == len(entries[0][0]) > 0
    assert b'"aa"' in entries[0][0]
    assert b'"ab"' in entries[0][0]


def test_a_snapshot_of_nothing_leaves_no_log(processor: BucketProcessor) -> None:
    """Spark's real store refuses an empty list: `rehearse` would fail before every query."""
    tester = TwsTester(processor)
    tester.test(11, [data_row(["aa"], 0)])
    assert tester.peekListState("log_s1", 11)
    processor._states["s1"].store(BucketResult(Version(2, 1), changes=[], is_snapshot=True))
    assert not tester.peekListState("log_s1", 11)
    assert tester.peekValueState("version_s1", 11) == (2, 1, 0, 0)


def test_buckets_that_grow_alike_are_not_compacted_together() -> None:
    ratios = [compaction_ratio(bucket) for bucket in range(64)]
    assert all(1 <= ratio < 2 for ratio in ratios)
    for count in (4, 8, 16, 64):  # a small application has the first ones alone
        parts = sorted([*ratios[:count], 2])
        assert max(after - before for before, after in zip(parts, parts[1:], strict=False)) < 3 / count


def test_a_bucket_is_compacted_when_its_own_ratio_is_reached(processor: BucketProcessor) -> None:
    tester = TwsTester(processor)
    tester.test(11, [data_row(["aa"], 0)])
    size = 10 * SMALL_LOG_BYTES
    limit = int(size * compaction_ratio(IDS.index(11)))
    for delta, is_compacted in ((limit - 1, False), (limit + 1, True)):
        version = tester.peekValueState("version_s1", 11)
        tester.updateValueState("version_s1", 11, (*version[:2], size, delta))
        tester.test(11, [data_row(["ab"], version[0])])
        assert (tester.peekValueState("version_s1", 11)[3] == 0) == is_compacted


def test_finished_rows_are_staged_as_they_are(processor: BucketProcessor) -> None:
    letter = encode_frame([pb.DeadLetter(code="C501").SerializeToString()], port=65535)
    row = Row(bucket=11, sequence=0, ordinal=0, kind=DONE, task=4, payload=letter)
    (found,) = TwsTester(processor).test(11, [row])
    processor.close()
    assert (found["port"], found["messages"], found["query"]) == (65535, 1, "q")
    assert Path(found["path"]).read_bytes() == letter


def test_the_longest_descriptor_of_a_file_counts() -> None:
    def file(path: str, size: int, partition: int) -> StagedFile:
        return StagedFile(2, path, size, size, 1, partition)

    rows = [file("b", 5, 1), file("a", 3, 0), file("b", 9, 1), file("b", 7, 1)]
    assert longest(rows) == [file("a", 3, 0), file("b", 9, 1)]


@pytest.mark.parametrize("nonce", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_nonces_survive_signed_columns(nonce: int) -> None:
    assert -(2**63) <= to_signed(nonce) < 2**63
    assert to_unsigned(to_signed(nonce)) == nonce


def test_plan_values_pickle(processor: BucketProcessor) -> None:
    import pickle

    copy: Any = pickle.loads(pickle.dumps(BucketProcessor(processor.level)))
    assert copy.level == processor.level
