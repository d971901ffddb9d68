"""Sources and sinks of Spark: rows become frames and frames rows; files, rates and tables on real Spark."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.spark_topology import options_in
from wallaroo.message.frame import encode_frame, read_frame
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.program.app import resolve
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.program.emit import emit
from wallaroo_runtime.spark.publish import Publisher
from wallaroo_runtime.spark.query import RunningQuery, start_query
from wallaroo_runtime.spark.row_sink import RowSinks
from wallaroo_runtime.spark.source.file_name import check_files, unmatched
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.sink_record import PARTITION, SinkRecord, columns_of
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import KafkaSource, SparkSink, SparkSource, Topology

DOCS = Path(__file__).parents[2] / "docs" / "tutorial"
PLAIN_WORKER = str(Path(__file__).with_name("plain_worker.py"))
VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
WORKER = json.loads((VALID / "word_count.json").read_bytes())["workers"][0]
HEAD = {"path": "0/sources/0", "name": "in", "codec": "native", "worker": "main", "max_message_bytes": 20}
KAFKA = KafkaSource(**HEAD, kind="kafka", topic="orders", brokers=("b:1",), start="start", options={})
ROWS = SparkSource(**HEAD, kind="spark", format="rate", options={}, value="value")
SAME = """
import wallaroo

def application_setup(args):
    rows, (folder, out) = wallaroo.Rows({"id": int, "text": str}), args[1:]
    source = wallaroo.SparkSourceConfig("parquet", {"path": folder}, rows)
    return wallaroo.build_application("Same", wallaroo.source("rows", source).to_sink(
        wallaroo.SparkSinkConfig("parquet", {"path": out}, rows, "id, text")))
"""
WORD = "trim(TRAILING '\\n' FROM CAST(value AS STRING))"


def test_frames_of_a_sink_become_rows() -> None:
    chosen = len(PARTITION).to_bytes(2, "little") + PARTITION + b"\x04\x00\x00\x00\x03\x00\x00\x00"
    other = b"\x01\x00h\x01\x00\x00\x00v"
    values, keys = [b"one", b"", b"three"], [b"", b"k"]
    frame = encode_frame(
        values, port=1, keys=keys, key_indexes=[1, 0, 1], headers=[other + chosen, b"", other], absent=[1]
    )
    records = [SinkRecord(b"k", b"one", 3), SinkRecord(None, None, None), SinkRecord(b"k", b"three", None)]
    assert list(columns_of(read_frame(frame)).records()) == records
    assert list(columns_of(read_frame(encode_frame([b"x"], port=1))).records()) == [SinkRecord(None, b"x", None)]


def topology(source: dict[str, Any], sink: dict[str, Any], *args: str) -> Topology:
    """Return an application that splits texts into words; its ends are Spark's."""
    head = {"name": "in", "kind": "spark", "codec": "native", "worker": "main", "max_message_bytes": 1000}
    step = {"path": "0/steps/0", "name": "split", "kind": "computation_multi", "inputs": ["0/sources/0"]}
    end = {"path": "0/sinks/0", "name": "out", "kind": "spark", "inputs": ["0/steps/0"], "worker": "main"}
    pipeline = {
        "name": "p",
        "sources": [{"path": "0/sources/0", **head, **source}],
        "steps": [{**step, "codec": "native", "worker": "main"}],
        "sinks": [{**end, **sink}],
    }
    worker = {**WORKER, "language": "plain", "command": ["{python}", PLAIN_WORKER], "directory": "/"}
    worker |= {"components": [], "args": list(args), "interface_hash": "sha256:" + "0" * 64}
    return load_document({"topology_version": 1, "name": "rows", "workers": [worker], "pipelines": [pipeline]})


@pytest.fixture
def start(spark: Any, tmp_path: Path) -> Iterator[Callable[[Topology], RunningQuery]]:
    """Give a function that starts an application on a checkpoint of its own."""
    running: list[RunningQuery] = []
    JournalWriter(tmp_path / "checkpoint" / "journal").close()

    def begin(app: Topology) -> RunningQuery:
        plan = compile_topology(app, shuffle_partitions=2)
        records = RecordCount.open(LocalDirectory(tmp_path / "checkpoint"))
        query = start_query(spark, plan, app, options_in(tmp_path / "checkpoint", records=records))
        running.append(query)
        return query

    yield begin
    for query in running:
        query.stop()


def finished(query: RunningQuery, records: int) -> bool:
    error = query.exception()
    assert error is None, error
    return query.progress().records.now.received >= records and not query.is_busy


@pytest.mark.jvm
def test_files_in_and_tables_out_over_a_restart(
    spark: Any, start: Callable[..., RunningQuery], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    source = {"format": "text", "options": {"path": str(tmp_path / "in")}, "schema": "value STRING", "value": "value"}
    select = f"{WORD} AS word, key IS NULL AS keyless"
    sink = {"format": "parquet", "options": {"path": str(tmp_path / "out")}, "value": select}
    words: Counter[str] = Counter()
    for run in range(2):
        lines = [f"run{run} line{line} word" for line in range(500)]
        (tmp_path / "in" / f"{run}.txt").write_text("\n".join(lines) + "\n")
        words.update(word for line in lines for word in line.split())
        query = start(topology(source, sink))
        wait_until(lambda query=query, run=run: finished(query, 500 * (run + 1)), "500 lines", 300.0)
        query.stop()
        records = query.progress().records
        assert (records.before.received, records.before.sent) == (500 * run, 1500 * run)
        assert (records.now.received, records.now.sent) == (500 * (run + 1), 1500 * (run + 1))
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert Counter(row.word for row in rows) == words
    assert all(row.keyless for row in rows)
    assert not list((tmp_path / "checkpoint" / "staging").glob("*.frames"))


@pytest.mark.jvm
def test_files_are_read_once_or_named_whatever_they_are_called(
    start: Callable[..., RunningQuery],
    spark: Any,
    wait_until: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(10)
    here, count = tmp_path / "in", 0
    here.mkdir()
    monkeypatch.setenv("HERE", str(here))
    source = {"format": "text", "options": {"path": "${env:HERE}"}, "schema": "value STRING", "value": "value"}
    sink = {"format": "parquet", "options": {"path": str(tmp_path / "out")}, "value": "value"}

    def put(odd: str = "") -> Path:
        nonlocal count
        count += 1
        name = "".join([*draw.choices("a% é日#&=+;@!\n\t'\"^~|", k=6), odd, str(count)])
        file = here / name
        file.with_name(f".{count}").write_text(f"line {count}\n")
        return file.with_name(f".{count}").rename(file)

    for odd in (":", draw.choice("{}[]*?\\")):
        bad = put(odd)
        put(), put()
        query = start(topology(source, sink))
        wait_until(lambda query=query: query.exception() is not None, "a finding", 300.0)
        (finding,) = query.exception().diagnostics  # type: ignore[union-attr]
        assert (finding.code, str(bad) in finding.message, "rename it" in finding.fix) == ("R611", True, True)
        query.stop()
        bad.rename(here / f"good{count}")
        query = start(topology(source, sink))
        wait_until(lambda query=query: finished(query, count), "all files", 300.0)
        query.stop()
        assert query.progress().records.now.received == count  # each once
    (tmp_path / "in [1]").mkdir()
    with pytest.raises(RunError, match=re.escape(f"R716 path {tmp_path}/in [1] of source")):
        start(topology({**source, "options": {"path": f"{tmp_path}/in [1]"}}, sink))
    query = start(topology({**source, "options": {"path": f"{tmp_path}/no[w]here*"}}, sink))
    assert [finding.code for finding in query.new_findings()] == ["R801"]
    application = topology(source, sink)
    assert not unmatched(spark, application)
    here.rename(tmp_path / "away")
    assert [str(finding) for finding in unmatched(spark, application).values()] == [
        'R801 source "in": no file matches ${env:HERE} now; nothing is read until one does\n'
        "  fix: correct the path, or create or mount its directory, unless a matching file will come later"
    ]


def test_files_that_spark_reads_wrongly_are_named() -> None:
    def finding(paths: list[str], there: list[str]) -> str:
        with pytest.raises(RunError) as caught:
            check_files(paths, lambda: there)
        return str(caught.value)

    check_files(["file:/in/a", "file:/in:1/b[1]"], list)
    check_files(["file:/in/a", "file:/in/1:b"], lambda: ["file:///in/a"])  # it was renamed
    check_files(["hdfs://n:9/in/a", "hdfs://n:9/in/1:b"], list)
    assert "/in/1:b\n  fix: rename it" in finding(["file:/in/1:b"], ["file:///in/1:b"])
    paths, there = ["file:/b", "file:/a[1]", "file:/b"], ["file:///b", "file:///a%5B1%5D", "file:///b"]
    assert "/a[1]\n  fix: rename it" in finding(paths, there)
    assert "/a[1]\n  fix: rename it" in finding(paths, ["file:///b", "file:///b"])


@pytest.mark.jvm
def test_the_tutorial_s_files_give_what_its_page_shows(
    start: Callable[..., RunningQuery], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    page = (DOCS / "examples.md").read_text(encoding="utf-8").partition("## Files to files")[2]
    logs, shown = re.search(r"printf '([^']*)' >", page), re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert logs is not None and shown is not None
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "monday.log").write_text(logs[1].replace("\\n", "\n"))
    document = emit(resolve(str(DOCS.parents[1] / "examples" / "tutorial" / "files" / "app.py")), [])
    for end in ("sources", "sinks"):
        options = document["pipelines"][0][end][0]["options"]
        options["path"] = str(tmp_path / options["path"])
    query = start(load_document(document))
    wait_until(lambda: finished(query, 3), "3 lines", 300.0)
    query.stop()
    rows = [line for file in (tmp_path / "out").glob("*.csv") for line in file.read_text().splitlines()]
    assert sorted(rows) == sorted(shown[1].splitlines())


@pytest.mark.jvm
@pytest.mark.parametrize("most", [10, 20_000, 200_000])
def test_rows_of_all_sizes_come_through_and_one_that_is_too_large_is_set_aside(
    spark: Any, start: Callable[..., RunningQuery], wait_until: Callable[..., None], tmp_path: Path, most: int
) -> None:
    (tmp_path / "same.py").write_text(SAME)
    draw, folder, out = random.Random(most), str(tmp_path / "in"), str(tmp_path / "out")
    texts = [draw.choice('a"\\,]ü\n') * draw.randrange(most) for _ in range(min(3000, 3_000_000 // most))]
    rows = spark.createDataFrame(list(enumerate(texts)), "id BIGINT, text STRING")
    large = spark.sql(f"SELECT -1L AS id, repeat('xy', {16 << 19}) AS text")
    rows.union(large).repartition(3).write.parquet(folder)
    query = start(load_application(str(tmp_path / "same.py"), [folder, out], "", "").topology)
    wait_until(lambda: finished(query, len(texts) + 1), "all rows", 300.0)
    query.stop()
    assert sorted(spark.read.parquet(out).collect()) == list(enumerate(texts))
    (letter,) = read_letters(tmp_path / "checkpoint")
    assert (letter.record.code, letter.record.step, letter.record.input) == ("R606", "rows", b"")
    assert letter.record.error.startswith("a row of 16,777,2") and 'column "text" has 16,777,21' in letter.record.error


@pytest.mark.jvm
def test_a_rate_as_source_and_json_lines_as_sink(
    spark: Any, start: Callable[..., RunningQuery], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    source = {"format": "rate", "options": {"rowsPerSecond": "200"}, "value": "CAST(value AS STRING)"}
    source |= {"key": "CAST(value % 3 AS STRING)", "timestamp": "timestamp"}
    sink = {
        "format": "text",
        "options": {"path": str(tmp_path / "out")},
        "value": f"{WORD} AS value",
    }
    query = start(topology(source, sink))
    wait_until(lambda: finished(query, 300), "300 rows", 300.0)
    query.stop()
    numbers = sorted(int(row.value) for row in spark.read.text(str(tmp_path / "out")).collect())
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 300


KILLS = st.sampled_from(["", "before the note", "before the count", "before the commit"])


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), KILLS), max_size=8))
def test_rows_count_once(drawn: list[tuple[int, str]]) -> None:
    """A micro-batch that is repeated after a kill is written again or not."""
    with TemporaryDirectory() as directory:
        place, planned = Path(directory), Mock(query="q")
        output = OutputPlace.on(place)
        tries = [
            (batch, messages, end) for batch, (messages, kill) in enumerate(drawn) for end in dict.fromkeys((kill, ""))
        ]
        for batch, messages, kill in tries:
            records, policy = RecordCount.open(LocalDirectory(place)), Mock(may_fail=False)
            rows = RowSinks(Mock(), {1: Mock(spec=SparkSink, path="0/sinks/0")}, output, records)
            rows._write = lambda *_: None  # type: ignore[method-assign]
            files = [StagedFile(1, f"{directory}/staged", 0, 0, messages, 0)] if messages else []
            publisher = Publisher(
                Mock(), policy, rows=rows, offset_log=planned, balance=Mock(), records=records,
                tell_visits=Mock(), tell_batch=None, application="", workers={},
            )  # fmt: skip
            if kill != "before the note":
                publisher._publish("q", batch, files, "")
            if kill in ("", "before the commit"):
                publisher._count(batch, files, {})
        assert RecordCount.open(LocalDirectory(place)).now.sent == sum(messages for messages, _ in drawn)


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sink": {"value": "no_such_column"}}, 'the SQL `no_such_column` of sink "out"'),
        ({"sink": {"value": "(value"}}, 'the SQL `(value` of sink "out"'),
        ({"sink": {"format": "nothing"}}, 'sink "out"'),
        ({"source": {"format": "nothing"}}, 'source "in" is not usable; [DATA_SOURCE_NOT_FOUND]'),
        (
            {"source": {"format": "text", "options": {"path": "/no/such/directory"}}},
            'source "in" is not usable; [PATH_NOT_FOUND]',
        ),
        ({"source": {"value": "nowhere + 1"}}, 'the SQL `nowhere + 1` of source "in"'),
        ({"source": {"timestamp": "to_time(value"}}, 'the SQL `CAST(value AS STRING)`, `to_time(value` of source "in"'),
    ],
)
def test_what_spark_does_not_accept_is_refused_before_the_first_message(
    start: Callable[..., RunningQuery], tmp_path: Path, more: dict[str, dict[str, str]], said: str, capfd: Any
) -> None:
    source = {"format": "rate", "options": {"rowsPerSecond": "10"}, "value": "CAST(value AS STRING)"}
    sink = {"format": "text", "options": {"path": str(tmp_path / "out")}, "value": "value"}
    with pytest.raises(RunError) as caught:
        start(topology({**source, **more.get("source", {})}, {**sink, **more.get("sink", {})}))
    (finding,) = caught.value.diagnostics
    assert finding.code == "R716"
    assert finding.message.startswith(said) and " is not usable; " in finding.message
    printed = f"{finding}{capfd.readouterr()}".lower()
    assert "py4j" not in printed and "jvm" not in printed
