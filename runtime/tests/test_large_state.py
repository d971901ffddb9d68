"""A list of one key that grows to 100 MB, on Spark: written in pieces, and read from its log in each micro-batch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.spark_topology import options_in, recent_reports
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.spark.query import start_query
from wallaroo_runtime.storage.journal.writer import JournalWriter

pytestmark = [pytest.mark.jvm, pytest.mark.long]
FOLDER = Path(__file__).with_name("large")
HALF = 50_000_000
MESSAGES = (f"a {HALF}", f"a {HALF}", "a 5")
LINES = [f"a {HALF}", f"a {2 * HALF}", f"a {2 * HALF + 5}"]


@pytest.mark.parametrize("language", ["python", "go"])
def test_a_list_that_grows_to_100_mb(
    language: str,
    spark: Any,
    tmp_path: Path,
    wait_until: Callable[..., None],
    published: Callable[[Path, int], list[str]],
) -> None:
    """The program compares each part with its checksum before it adds one, so a piece out of place is a dead letter."""
    topology = load_application(str(FOLDER / "app.py" if language == "python" else FOLDER), [], "", "").topology
    plan = compile_topology(topology, shuffle_partitions=2)
    writer = JournalWriter(tmp_path / "journal")
    for text in MESSAGES:  # a frame, and with max_batch_bytes a micro-batch, each
        writer.append(plan.ports["0/sources/0"], 1, [len(text).to_bytes(4, "big") + text.encode()], timestamp_ms=1)
    writer.close()
    query = start_query(spark, plan, topology, options_in(tmp_path, max_batch_bytes=64, cache_bytes=1))
    try:
        is_done = lambda: query.exception() or query.progress().messages_in == len(MESSAGES)  # noqa: E731
        wait_until(is_done, "all messages", 300.0)
        assert query.exception() is None
        assert len(recent_reports(query)) >= len(MESSAGES), "micro-batches had several messages"
    finally:
        query.stop()
    assert published(tmp_path, plan.ports["0/sinks/0"]) == LINES
    assert not list(read_letters(tmp_path))
