"""Windows in a Spark query, against the plain reference; the query ends and goes on in between."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.spark_topology import options_in
from vector.make_window_cases import counts, ranges
from vector.make_windows import Reference
from wallaroo.message.frame import TICK_PORT
from wallaroo.message.timer import FIRST_MS
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.spark.batch_report import BatchReport
from wallaroo_runtime.spark.query import start_query
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter

pytestmark = pytest.mark.jvm
PROGRAM = """
import wallaroo

def application_setup(args):
    values = wallaroo.source("values", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    sums = wallaroo.range_windows(wallaroo.seconds(9)).with_slide(wallaroo.seconds(3)).over(Sum)
    pipeline = values.key_by(key).to(sums).to(wallaroo.count_windows(4).over(Lists))
    return wallaroo.build_application("windows", pipeline.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "1", encode)))

class Sum(wallaroo.Aggregation):
    def initial_accumulator(self):
        return [0]

    def update(self, input, accumulator):
        accumulator[0] += input[1]

    def combine(self, accumulator1, accumulator2):
        return [accumulator1[0] + accumulator2[0]]

    def output(self, key, accumulator):
        return accumulator[0]

class Lists(wallaroo.Aggregation):
    def initial_accumulator(self):
        return []

    def update(self, input, accumulator):
        accumulator.append(input)

    def combine(self, accumulator1, accumulator2):
        return accumulator1 + accumulator2

    def output(self, key, accumulator):
        return "%s %s" % (key, accumulator)

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    key, value = bs.decode().split()
    return key, int(value)

@wallaroo.key_extractor
def key(data):
    return data[0]

@wallaroo.encoder
def encode(line):
    return line + "\\n"
"""


def journaled(directory: Path) -> list[dict[str, Any]]:
    """Write messages and ticks into a journal; return them as the reference takes them."""
    source = random.Random(7)
    writer = JournalWriter(directory)
    events: list[dict[str, Any]] = []
    now, sequence = 1_700_000_000_000, 0
    for _ in range(400):
        now += source.choice((0, 1, 200, 900, 4000))
        if source.random() < 0.4:
            writer.append(TICK_PORT, 0, [], now)
            events.append({"sequence": sequence, "tick": now})
            sequence += 1
            continue
        count, came = source.randrange(1, 9), now - source.choice((0, 0, 0, 0, 20_000))  # the clock was set back
        found = [
            {"sequence": sequence + at, "key": source.choice("abcdefgh"), "time": came, "value": sequence + at}
            for at in range(count)
        ]
        texts = [f"{each['key']} {each['value']}".encode() for each in found]
        writer.append(0, count, [len(text).to_bytes(4, "big") + text for text in texts], came)
        events += found
        sequence += count
    writer.append(TICK_PORT, 0, [], now + 60_000)
    events.append({"sequence": sequence, "tick": now + 60_000})
    writer.close()
    return events


def by_key(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line[0], []).append(line)
    return found


def expected(events: list[dict[str, Any]]) -> tuple[list[str], int]:
    """Return what the windows give, and how many messages they drop."""
    sums, lists = Reference(ranges(9000, 3000)), Reference(counts(4))
    sums.run(events)
    ticks = [event for event in events if "tick" in event]
    messages = [
        {"sequence": each.sequence, "key": each.key, "time": each.time, "value": sum(each.values)}
        for each in sums.given
    ]
    lists.run([*ticks, *messages])
    return [f"{each.key} {list(each.values)}" for each in lists.given], sums.dropped


def test_windows_of_windows(
    spark: Any, tmp_path: Path, wait_until: Callable[..., None], published: Callable[[Path, int], list[str]]
) -> None:
    program = tmp_path / "windows.py"
    program.write_text(PROGRAM)
    topology = load_application(str(program), [], "", "").topology
    plan = compile_topology(topology, shuffle_partitions=2)
    assert len(plan.levels) == 3
    checkpoint = tmp_path / "checkpoint"
    events = journaled(checkpoint / "journal")
    wanted, late = expected(events)
    assert len(wanted) > 100 and late > 20
    reports: list[BatchReport] = []

    def run_until(offset: int) -> None:
        options = options_in(checkpoint, max_batch_bytes=8192, tell_batch=reports.append)
        query = start_query(spark, plan, topology, options)
        try:
            wait_until(lambda: query.exception() or query.progress().offset >= offset, f"offset {offset}", 300.0)
            assert query.exception() is None
        finally:
            query.stop()

    run_until(1)
    run_until(JournalReader(checkpoint / "journal").end().offset)
    found = published(checkpoint, plan.ports[next(topology.sinks()).path])
    assert by_key(found) == by_key(wanted)
    counts = [count for report in reports for count in report.steps.values()]
    assert sum(count["dropped_late"] for count in counts) == late


SESSIONS = """
import wallaroo

def application_setup(args):
    folder, out = args[1:]
    lines = wallaroo.SparkSourceConfig(
        "text", {"path": folder}, decode, timestamp="TRY_CAST(get(split(value, ' '), 1) AS BIGINT)")
    visits = wallaroo.source("lines", lines).key_by(key).to(wallaroo.session_windows(wallaroo.seconds(10)).over(Times))
    return wallaroo.build_application("sessions", visits.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", out, encode)))

class Times(wallaroo.Aggregation):
    def initial_accumulator(self):
        return []

    def update(self, input, accumulator):
        accumulator.append(input[1])

    def combine(self, accumulator1, accumulator2):
        return accumulator1 + accumulator2

    def output(self, key, accumulator):
        return " ".join([key, *accumulator])

@wallaroo.line_decoder
def decode(line):
    return tuple(line.decode().split())

@wallaroo.key_extractor
def key(data):
    return data[0]

@wallaroo.encoder
def encode(line):
    return line + "\\n"
"""


def test_records_that_wait_for_their_micro_batch_are_no_silence(
    spark: Any, tmp_path: Path, wait_until: Callable[..., None], published: Callable[[Path, int], list[str]]
) -> None:
    """Each micro-batch takes longer than the gap: its ticks lie between the records before it and its own."""
    program, folder, checkpoint, chance = tmp_path / "a.py", tmp_path / "in", tmp_path / "checkpoint", random.Random(5)
    program.write_text(SESSIONS)
    folder.mkdir()
    topology = load_application(str(program), [str(folder), "1"], "", "").topology
    plan = compile_topology(topology, shuffle_partitions=2)
    now, times = 1_700_000_000_000, dict.fromkeys("abc", 1_600_000_000_000)
    wanted: dict[str, list[str]] = {key: [key] for key in times}

    def run(lines: list[str]) -> None:
        nonlocal now
        if lines:
            (folder / f"{now}.txt").write_text("".join(f"{line}\n" for line in lines))
        writer = JournalWriter(checkpoint / "journal")
        for _ in range(4):
            now += 15_000
            writer.append(TICK_PORT, 0, [], now)
        end = writer.end.offset
        writer.close()
        query = start_query(spark, plan, topology, options_in(checkpoint))
        try:
            wait_until(lambda: query.exception() or query.progress().offset >= end, f"offset {end}", 300.0)
            assert query.exception() is None
        finally:
            query.stop()

    for _ in range(3):
        lines = []
        for key in times:
            times[key] += chance.randrange(1, 10_000)
            wanted[key].append(str(times[key]))
            lines.append(f"{key} {times[key]}")
        run([*lines, "a", "b none"])  # rows without a time: the present time would make them late, and others too
    port = plan.ports[next(topology.sinks()).path]
    assert published(checkpoint, port) == []
    letters = [letter.record for letter in read_letters(checkpoint)]
    assert sorted((each.code, each.key, each.timestamp_ms) for each in letters) == sorted(
        ("C523", key, FIRST_MS - 1) for key in (b"a", b"b") for _ in range(3)
    )
    run([])
    run([])
    assert sorted(published(checkpoint, port)) == sorted(" ".join(each) for each in wanted.values())
