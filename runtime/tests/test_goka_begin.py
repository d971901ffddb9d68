"""What Goka's own processors left, as a new checkpoint begins with it: values of tables, and offsets of inputs.

tests/test_goka_continue.py has it with Goka's own processor, Kafka and Spark.
"""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import PENDING, TAKEN, read_manifest
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.spark.goka.group import Input, check_committed, double_of, line_of, table_of
from wallaroo_runtime.spark.goka.table import TableCount, counts_of, values_of
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource

ROOT = Path(__file__).parents[2]
CASE = ROOT / "tests" / "cases" / "goka_clicks"
DOCUMENT = ROOT / "topology-schema" / "vectors" / "topologies" / "valid" / "records.json"
PORT = 5
SOURCE = KafkaSource(
    path="0/sources/0", name="clicks", codec="native", worker="main", max_message_bytes=20, kind="kafka",
    topic="clicks", brokers=("b:1",), start="end", options={}, content="record",
)  # fmt: skip


def newest(records: list[tuple[int, int, int, bytes, bytes | None]]) -> dict[bytes, bytes]:
    """Return the table, in the plainest way: of the last records of each partition the newest."""
    last = {(part, key): (time, part, value) for part, _, time, key, value in records}
    found = {}
    for key in {key for _, key in last}:
        *_, value = max((each for (_, of), each in last.items() if of == key), key=lambda each: each[:2])
        if value is not None:
            found[key] = value
    return found


@pytest.mark.jvm
def test_a_table_is_what_its_last_records_say(spark: SparkSession) -> None:
    """Of drawn tables, all in one query, whose keys begin with the number of their table."""
    draw, rows, expected = random.Random(5), [], {}
    for table in range(60):
        keys = [b"%d %d" % (table, number) for number in range(draw.randint(1, 6))]
        records = [
            (draw.randrange(3), at, draw.randrange(10), draw.choice(keys), draw.choice([None, b"", b"1", b"2"]))
            for at in range(draw.randint(0, 40))
        ]
        rows += draw.sample(records, len(records))
        expected |= newest(records)
    schema = "partition INT, offset LONG, timestamp LONG, key BINARY, value BINARY"
    found = values_of(spark.createDataFrame(rows, schema)).collect()
    assert {bytes(row["key"]): bytes(row["value"]) for row in found} == expected
    last = {(part, key): value for part, _, _, key, value in sorted(rows, key=lambda row: row[1])}
    several = Counter(key for (_, key), value in last.items() if value is not None)
    assert {bytes(row["key"]): row["is_double"] for row in found} == {key: several[key] > 1 for key in expected}


def test_keys_in_several_partitions_are_told_once() -> None:
    notes = [
        {"port": PORT, "keys": 3, "bytes": 9},
        {"port": PORT, "keys": 4, "bytes": 9},
        {"port": PORT, "double": 2, "example": "YQ=="},
        {"port": PORT, "double": 1, "example": "Yg=="},
        {"port": PORT + 1, "keys": 1, "bytes": 1},
    ]
    counts = counts_of(notes)
    assert counts == {PORT: TableCount(7, 3, b"a"), PORT + 1: TableCount(1)}
    assert str(double_of("my-group-table", counts[PORT])) == (
        "R789 3 keys have values in several partitions of topic my-group-table, e.g. a; Goka keeps a state for each "
        "of them, but here only the newest value counts\n"
        "  fix: if another value is the right one, correct it with a message to the group's callback"
    )


def said(found: Input) -> str:
    with pytest.raises(RunError) as caught:
        line_of("my-group", found)
    return str(caught.value)


@given(st.data())
def test_no_record_is_left_out_and_none_is_read_twice(data: st.DataObject) -> None:
    """Each partition begins at its committed offset; where there is none, nothing is skipped without a word."""
    offsets = st.integers(0, 5)
    begins, committed = (data.draw(st.dictionaries(st.integers(0, 3), offsets)) for _ in range(2))
    ends = {number: begin + data.draw(offsets) for number, begin in begins.items()}
    committed = {number: at for number, at in committed.items() if number in begins}
    found = Input(replace(SOURCE, start=data.draw(st.sampled_from(["start", "end", "-2"]))), begins, ends, committed)
    is_known = all(begins[number] <= at <= ends[number] for number, at in committed.items())
    is_skipped = found.source.start != "start" and any(
        begins[number] < ends[number] for number in begins if number not in committed
    )
    if not is_known or is_skipped:
        assert "R788 my-group" in said(found)
        return
    assert json.loads(line_of("my-group", found)) == {
        "clicks": {str(number): committed.get(number, begins[number]) for number in begins}
    }


def test_a_table_that_no_group_writes() -> None:
    """Its states have another form, which only the program knows."""
    topology = load_document(json.loads(DOCUMENT.read_bytes()))
    (group, *_), plan = topology.pipelines, compile_topology(topology, shuffle_partitions=2)
    sink = next(sink for sink in topology.sinks() if isinstance(sink, KafkaSink))
    with pytest.raises(RunError) as caught:
        table_of(plan, topology, group, sink)
    assert "R788" in str(caught.value) and "a run can only continue groups of" in str(caught.value)


COMMAND = "kafka-consumer-groups.sh --bootstrap-server b:1 --group my-group --topic clicks"


def test_an_offset_that_the_topic_does_not_have() -> None:
    assert said(Input(SOURCE, {0: 0, 1: 5}, {0: 3, 1: 9}, {0: 3, 1: 4})) == (
        "R788 my-group cannot continue from the data of Goka's own processors; it has committed offset 4 of partition "
        "1 of "
        "clicks, with offsets 5 to 9\n"
        f"  fix: set it with `{COMMAND}:1 --reset-offsets --execute` and --to-earliest or --to-latest"
    )


def test_partitions_without_an_offset() -> None:
    found = Input(SOURCE, {0: 0, 1: 5, 2: 7, 3: 0}, {0: 3, 1: 9, 2: 7, 3: 1}, {0: 3})
    assert said(found) == (
        "R788 my-group cannot continue from the data of Goka's own processors; it has committed no offset for these "
        "partitions of clicks, which have records: 1, 3\n"
        f"  fix: `{COMMAND}:1,3 --reset-offsets --execute --to-latest` skips these records, --to-earliest reads them"
    )
    assert line_of("my-group", replace(found, source=replace(SOURCE, start="start"))) == (
        '{"clicks":{"0":3,"1":5,"2":7,"3":0}}'
    )


def test_offsets_that_kafka_has_dropped() -> None:
    empty, read = Input(SOURCE, {0: 4}, {0: 4}, {}), Input(SOURCE, {0: 0}, {0: 3}, {})
    check_committed("my-group", [empty, empty])
    check_committed("my-group", [read, Input(SOURCE, {0: 0}, {0: 3}, {0: 2})])
    with pytest.raises(RunError) as caught:
        check_committed("my-group", [empty, read])
    assert str(caught.value) == (
        "R788 my-group cannot continue from the data of Goka's own processors; its table has records, but it has "
        "committed no "
        "offsets of clicks\n"
        "  fix: Kafka drops the offsets of a group that is idle for 7 days; set them with "
        f"`{COMMAND} --reset-offsets --execute --to-datetime TIME`"
    )


def opened(path: Path, *, continues_goka: bool) -> Checkpoint:
    place = HeldDirectory.take(path)
    try:
        document = json.loads(DOCUMENT.read_bytes())
        return Checkpoint.open(
            place, load_document(document), shuffle_partitions=2, buckets_per_partition=4, continues_goka=continues_goka
        )
    finally:
        place.release()


def test_a_checkpoint_says_what_is_to_be_taken_over_until_it_was(tmp_path: Path) -> None:
    begun = opened(tmp_path, continues_goka=True)
    assert (begun.manifest.goka, begun.continues, read_manifest(tmp_path).goka) == (PENDING, False, "pending")
    (tmp_path / "spark" / "offsets").mkdir()
    (tmp_path / "spark" / "offsets" / "0").write_text("v1")  # of a run that was killed
    again = opened(tmp_path, continues_goka=False)
    assert (again.manifest.goka, again.continues, list((tmp_path / "spark").iterdir())) == (PENDING, True, [])
    again.record_taken_over(0)
    (tmp_path / "spark" / "kept").touch()
    for wanted in (True, False):  # a program asks for it at each start
        later = opened(tmp_path, continues_goka=wanted)
        assert (later.manifest.goka, later.manifest.rescaled) == (TAKEN, (-1, 0))
    assert (tmp_path / "spark" / "kept").exists()


def test_a_checkpoint_that_is_not_new(tmp_path: Path) -> None:
    assert opened(tmp_path, continues_goka=False).manifest.goka == ""
    before = (tmp_path / "application.json").read_bytes()
    with pytest.raises(RunError) as caught:
        opened(tmp_path, continues_goka=True)
    assert str(caught.value) == (
        "R788 Records cannot continue from the data of Goka's own processors; checkpoint "
        f"{tmp_path} was begun without --continue-goka, and has its own states and positions\n"
        "  fix: leave out --continue-goka, or give a new --checkpoint"
    )
    assert (tmp_path / "application.json").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ["--fresh"],
            "R608 --fresh would count again what an earlier run has counted: Goka's offsets stay where they were\n"
            "  fix: leave out one of the two; --continue-goka is for a new checkpoint\n",
        ),
        (
            ["--engine", "memory"],
            "R608 --continue-goka means nothing with --engine memory\n"
            "  fix: leave out --continue-goka, or --engine memory\n",
        ),
        (
            ["--mode", "realtime"],
            "R608 --continue-goka begins a checkpoint of micro-batches\n"
            f"  fix: run it once without --mode, then `wallaroo state rescale {CASE / 'app.py'} --mode realtime`\n",
        ),
        (
            ["--mode", "realtime", "--checkpoint", "of two words"],
            "R608 --continue-goka begins a checkpoint of micro-batches\n"
            "  fix: run it once without --mode, then `wallaroo state rescale 'of two words' --mode realtime`\n",
        ),
    ],
)
def test_options_that_do_not_go_together(options: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(CASE / "app.py"), "--continue-goka", *options]) == 2
    assert capsys.readouterr().err == text
