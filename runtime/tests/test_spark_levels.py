"""A plan with two shuffles, a program on the Python SDK, and one pipeline without state next to them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.spark_topology import options_in
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.plan import Plan, compile_topology
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.spark.options import QueryOptions
from wallaroo_runtime.spark.query import start_query
from wallaroo_runtime.spark.state_store.choice import StateChoice
from wallaroo_runtime.spark.state_store.reader import StateReader
from wallaroo_runtime.spark.state_store.rescale import Rescaling, rescale
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.spark_log import last_batch

pytestmark = pytest.mark.jvm
PROGRAM = """
import wallaroo

def application_setup(args):
    ab = wallaroo.ApplicationBuilder("levels")
    ab.new_pipeline("count", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    ab.to(split)
    ab.to_state_partition(count, Counts, "words", first_letter)
    ab.to_state_partition(add, Total, "totals", parity)
    ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "1", encode))
    ab.new_pipeline("echo", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    ab.to(reverse)
    ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "1", encode))
    return ab.build()

class Counts(dict):
    pass

class Total:
    def __init__(self):
        self.value = 0

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode()

@wallaroo.computation_multi("split")
def split(text):
    return text.split()

@wallaroo.partition
def first_letter(word):
    return word[0]

@wallaroo.state_computation("count")
def count(word, counts):
    counts[word] = counts.get(word, 0) + 1
    return (word, counts[word]), True

@wallaroo.partition
def parity(pair):
    return pair[1] % 2

@wallaroo.state_computation("add")
def add(pair, total):
    total.value += pair[1]
    return "%s %d %d" % (pair[0], pair[1], total.value), True

@wallaroo.computation("reverse")
def reverse(text):
    if text == "bad":
        raise ValueError("told to")
    return text[::-1]

@wallaroo.encoder
def encode(line):
    return line + "\\n"
"""


def framed(texts: list[str]) -> list[bytes]:
    """Return texts as they stand on the wire."""
    return [len(text.encode()).to_bytes(4, "big") + text.encode() for text in texts]


def test_two_levels_and_a_pipeline_without_state(
    spark: Any, tmp_path: Path, wait_until: Callable[..., None], published: Callable[[Path, int], list[str]]
) -> None:
    program = tmp_path / "levels.py"
    program.write_text(PROGRAM)
    topology = load_application(str(program), [], "", "").topology
    plan = compile_topology(topology, shuffle_partitions=2)
    assert len(plan.levels) == 3
    checkpoint = tmp_path / "checkpoint"
    writer = JournalWriter(checkpoint / "journal")
    texts = [f"w{number % 10} w{number % 3}" for number in range(300)]
    echoes = [f"echo {number}" for number in range(300)] + ["bad"]
    for start in range(0, 300, 50):
        writer.append(plan.ports["0/sources/0"], 50, framed(texts[start : start + 50]), timestamp_ms=1)
        writer.append(plan.ports["1/sources/0"], 50, framed(echoes[start : start + 50]), timestamp_ms=1)
    writer.append(plan.ports["1/sources/0"], 1, framed(["bad"]), timestamp_ms=1)
    writer.close()
    query = start_query(spark, plan, topology, options_in(checkpoint, max_batch_bytes=4096))
    try:
        wait_until(lambda: query.exception() or query.progress().messages_in == 601, "all messages", 300.0)
        assert query.exception() is None
        assert query.progress().dead_letters == 1
    finally:
        query.stop()
    assert published(checkpoint, plan.ports["1/sinks/0"]) == [text[::-1] for text in echoes[:-1]]
    lines = [line.split() for line in published(checkpoint, plan.ports["0/sinks/0"])]
    counts: dict[str, int] = {}
    totals = {0: 0, 1: 0}
    for text in " ".join(texts).split():
        counts[text] = counts.get(text, 0) + 1
    seen: dict[str, list[int]] = {}
    for word, number, total in lines:
        seen.setdefault(word, []).append(int(number))
        totals[int(number) % 2] += int(number)
        assert int(total) == totals[int(number) % 2]
    # Every count came once; one key's counts pass in order to each of the two keys of the next level.
    for word, numbers in seen.items():
        assert sorted(numbers) == list(range(1, counts[word] + 1))
        assert [n for n in numbers if n % 2] == sorted(n for n in numbers if n % 2)
    assert set(seen) == set(counts)
    assert stored_keys(spark, checkpoint, plan) == [{b"w"}, {number.to_bytes(8, "big") for number in (0, 1)}]


def stored_keys(spark: Any, checkpoint: Path, plan: Plan) -> list[set[bytes]]:
    """Return the keys that Spark has stored of each stage with state, in order of the levels."""
    logs = StateReader(spark, LocalDirectory(checkpoint), plan, "spark")
    stages = [stage for level in plan.levels[1:] for stage in level if stage.has_state]
    choices = [StateChoice(frozenset(node.state_port for node in stage.nodes if node.state)) for stage in stages]
    pairs = zip(stages, choices, strict=True)
    return [{row.key for row in logs.rows(stage.id, choice, logs.batch())} for stage, choice in pairs]


@pytest.mark.long
def test_two_levels_go_on_with_other_partitions_and_buckets(
    spark: Any, tmp_path: Path, wait_until: Callable[..., None], published: Callable[[Path, int], list[str]]
) -> None:
    program = tmp_path / "levels.py"
    program.write_text(PROGRAM)
    topology = load_application(str(program), [], "", "").topology
    before, after = (
        compile_topology(topology, shuffle_partitions=partitions, buckets_per_partition=buckets)
        for partitions, buckets in ((2, 4), (3, 2))
    )
    checkpoint = tmp_path / "checkpoint"
    options = options_in(checkpoint)
    writer = JournalWriter(checkpoint / "journal")
    words = [f"{letter}{number % 5}" for number in range(100) for letter in "abcdefgh"]

    def process(plan: Any, options: QueryOptions, count: int) -> None:
        writer.append(plan.ports["0/sources/0"], 1, framed([" ".join(words)]), timestamp_ms=1)
        writer.sync()
        writer.publish()
        query = start_query(spark, plan, topology, options)
        try:
            wait_until(lambda: query.exception() or query.progress().messages_in == count, "all messages", 300.0)
            assert query.exception() is None
        finally:
            query.stop()

    process(before, options, 1)
    new = checkpoint / "spark-2"
    batch = last_batch(path.name for path in (checkpoint / "spark" / "commits").iterdir())
    offsets = (checkpoint / "spark" / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2:]
    what = Rescaling(
        checkpoint / "spark", new, before, after, is_realtime=False, batch=batch + 1, offsets=tuple(offsets)
    )
    moved = rescale(spark, what)
    assert moved.keys == 8 + 2  # first letters, parities
    process(after, replace(options, checkpoint=str(new)), 2)
    writer.close()
    lines = [line.split() for line in published(checkpoint, after.ports["0/sinks/0"])]
    numbers = [int(number) for _, number, _ in lines]
    assert sorted(numbers) == sorted(number for number in range(1, 41) for _ in range(8 * 5))
    for parity in (0, 1):
        last = [int(total) for _, number, total in lines if int(number) % 2 == parity][-1]
        assert last == sum(number for number in numbers if number % 2 == parity)
