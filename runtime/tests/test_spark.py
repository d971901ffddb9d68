"""A query on real Spark with a worker without SDK: exactness when workers, tasks and the query die."""

import json
import os
import re
import shutil
import signal
import string
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from support.spark_topology import options_in, topology
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Node, NodeKind, Plan, Stage
from wallaroo_runtime.plan.bucket import bucket_ids
from wallaroo_runtime.service.credential import TOKEN_FILE
from wallaroo_runtime.spark import publish, session
from wallaroo_runtime.spark.account import Accounts
from wallaroo_runtime.spark.micro_batches import Rows
from wallaroo_runtime.spark.publish import read_rows
from wallaroo_runtime.spark.query import RunningQuery, start_query
from wallaroo_runtime.spark.session import running_session
from wallaroo_runtime.spark.source.kafka import check_connector, check_kafka
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.progress import progress_in
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import KafkaSource, Pipeline, Topology
from wallaroo_runtime.worker import control

pytestmark = pytest.mark.jvm
VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"
WORD_COUNT = json.loads((VECTORS / "topologies" / "valid" / "word_count.json").read_bytes())
BUCKETS = 8
SOURCE = Node("0/sources/0", NodeKind.SOURCE, port=0)
SPLIT = Node("0/steps/0", NodeKind.COMPUTATION_MULTI, ("0/sources/0",))
KEY = Node("0/steps/1", NodeKind.KEY, ("0/steps/0",), 1)
COUNT = Node("0/steps/1", NodeKind.STATE_COMPUTATION, (), 1, "counts", 1)
SINK = Node("0/sinks/0", NodeKind.SINK, ("0/steps/1",), 2)
COUNTING = Plan(
    "counts",
    {"0/sources/0": 0, "0/steps/1": 1, "0/sinks/0": 2},
    ((Stage("s0", "main", (SOURCE, SPLIT, KEY), BUCKETS),), (Stage("s1", "main", (COUNT, SINK), BUCKETS),)),
    2,
    bucket_ids(2, BUCKETS // 2),
)
SPLITTING = replace(
    COUNTING, levels=((Stage("s0", "main", (SOURCE, SPLIT, replace(SINK, inputs=("0/steps/0",))), BUCKETS),),)
)


@pytest.mark.parametrize("mode", ["realtime", "microbatch"])
def test_a_checkpoint_at_a_url_is_not_rescaled_in_or_to_real_time_mode(
    mode: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, token = tmp_path / "checkpoint", tmp_path / "token"
    place = HeldDirectory.take(directory)
    try:
        Checkpoint.open(place, load_document(WORD_COUNT), shuffle_partitions=1, buckets_per_partition=8, mode=mode)
    finally:
        place.release()
    starts: list[object] = []
    monkeypatch.setattr(session, "create_session", lambda *_, **__: (starts.append(spark), spark)[1])
    monkeypatch.setattr(session, "stop_session", lambda _: None)
    token.touch(0o600)
    token.write_text("0123456789abcdef" * 3)
    services = (
        "--gateway",
        "127.0.0.1:1",
        "--egress",
        "127.0.0.1:1",
        "--conf",
        f"{TOKEN_FILE}={token}",
    )
    before, url = (directory / "application.json").read_bytes(), directory.as_uri()
    reason = "real-time mode can be rescaled only on one machine, but it is at a URL"
    changes = [["--buckets", "4"], ["--partitions", "2"]] if mode == "realtime" else [["--mode", "realtime"]]
    for change in changes:
        assert main(["state", "rescale", url, *change, *services]) == 2
        said = capsys.readouterr().err
        assert f"R663 checkpoint {url} cannot be rescaled; {reason}\n" in said
        assert "fix: run it as before; a new --checkpoint, " in said
    assert (directory / "application.json").read_bytes() == before
    assert len(starts) == (2 if mode == "realtime" else 0), "Spark starts only if the present mode must be read"


def test_a_spark_without_kafkas_connector_says_what_to_do(spark: Any) -> None:
    head: dict[str, Any] = {"path": "0/sources/0", "name": "in", "kind": "kafka", "codec": "native", "worker": "main"}
    topic = {"topic": "t", "brokers": ("127.0.0.1:1",), "options": {}, "start": "start"}
    source = KafkaSource(**head, **topic, max_message_bytes=1000)
    reading = replace(topology(), pipelines=(Pipeline("p", (source,), (), ()),))
    assert running_session() is spark
    check_connector(spark, topology())
    for check in (check_connector, check_kafka):
        with pytest.raises(RunError) as caught:
            check(spark, reading)
        assert str(caught.value) == (
            'R795 application "counts" uses Kafka; Spark was started without the connector for Kafka\n'
            "  fix: end this run and start it again: Spark loads the connector when it starts"
        )


@pytest.mark.parametrize("length", [1, 3 * 1024 * 1024], ids=["short_rows", "rows_longer_than_a_page"])
def test_a_sort_takes_little_more_memory_than_its_rows(spark: Any, length: int) -> None:
    rows = spark.range(4).selectExpr(f"repeat(char(100 - id), {length}) AS text").repartition(1)
    ordered = rows.sortWithinPartitions("text")
    assert [row.text for row in ordered.collect()] == [letter * length for letter in "abcd"]
    plan = ordered._jdf.queryExecution().executedPlan()
    assert plan.nodeName() == "Sort"
    used = plan.metrics().apply("peakMemory").value()
    assert 4 * length < used < 4 * length + 2 * 1024 * 1024


@dataclass
class Application:
    """A checkpoint directory with a journal, and the queries that are run on it."""

    spark: Any
    wait_until: Callable[..., None]
    published: Callable[[Path, int], list[str]]
    checkpoint: Path
    sent: int = 0
    running: list[RunningQuery] = field(default_factory=list)

    def send(self, texts: list[str]) -> None:
        """Journal messages."""
        writer = JournalWriter(self.checkpoint / "journal")
        data = b"".join(len(text.encode()).to_bytes(4, "big") + text.encode() for text in texts)
        if texts:
            writer.append(0, len(texts), [data], timestamp_ms=1)
        writer.sync()
        writer.publish()
        writer.close()
        self.sent += len(texts)

    def start(self, plan: Plan = COUNTING, app: Topology | None = None, **options: Any) -> RunningQuery:
        """Start a query."""
        query = start_query(self.spark, plan, app or topology(), options_in(self.checkpoint, **options))
        self.running.append(query)
        return query

    def finish(self, query: RunningQuery) -> None:
        """Wait until everything that was sent is processed."""

        def done() -> bool:
            error = query.exception()
            assert error is None, error
            return query.progress().messages_in == self.sent

        self.wait_until(done, f"{self.sent} messages", 300.0)

    def lines(self) -> list[str]:
        """Return what was published for the sink, in order."""
        return self.published(self.checkpoint, SINK.port)


@pytest.fixture
def application(
    spark: Any, tmp_path: Path, wait_until: Callable[..., None], published: Callable[[Path, int], list[str]]
) -> Iterator[Application]:
    """Give an application; its queries are stopped afterwards."""
    found = Application(spark, wait_until, published, tmp_path)
    found.send([])
    yield found
    for query in found.running:
        query.stop()


def counts_of(lines: list[str]) -> dict[str, list[tuple[int, int]]]:
    """Return for each word its counts and sums of random numbers, as they came out."""
    found: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        match = re.fullmatch(r"(\S+) => (\d+) (\d+)", line)
        assert match, line
        found.setdefault(match[1], []).append((int(match[2]), int(match[3])))
    return found


def assert_exact(lines: list[str], texts: list[str]) -> None:
    """Check that each word was counted once, in order, and that no sum of random numbers ever went back."""
    expected = Counter(word for text in texts for word in text.split())
    found = counts_of(lines)
    assert {word: [count for count, _ in rows] for word, rows in found.items()} == {
        word: list(range(1, count + 1)) for word, count in expected.items()
    }
    sums: dict[str, int] = {}
    for line in lines:
        word, _, rest = line.partition(" => ")
        total = int(rest.split()[1])
        # Each message adds at least 1 and less than 1000 to what the letter's message before has left.
        assert 0 < total - sums.get(word[0], 0) < 1000, f"{line}: the state went on from another copy"
        sums[word[0]] = total


def worker_pid(query: RunningQuery) -> int:
    """Return the process of the worker."""
    directory = Path(query.targets["main"].removeprefix("unix:")).parent
    return int(control.ask(directory, {"op": "wait"}, 30.0)["pid"])


def test_counts_and_continues_after_a_restart(application: Application) -> None:
    texts = [f"apple bee a{number % 7} {'cat ' * (number % 3)}" for number in range(2000)]
    application.send(texts[:1000])
    query = application.start()
    application.finish(query)
    query.stop()
    assert progress_in(LocalDirectory(application.checkpoint / "spark")).messages_in == 1000
    application.send(texts[1000:])
    query = application.start()
    assert query.progress().messages_in in (1000, 2000)
    application.finish(query)
    assert_exact(application.lines(), texts)
    assert not list((application.checkpoint / "staging").iterdir())


def test_killed_workers_change_nothing(application: Application) -> None:
    texts = [f"w{number % 50} x{number % 3} " * 20 for number in range(6000)]
    for start in range(0, len(texts), 100):
        application.send(texts[start : start + 100])
    query = application.start(max_batch_bytes=64 * 1024, chunk_bytes=16 * 1024)
    killed: set[int] = set()
    seen = 0
    while (now := query.progress().messages_in) < application.sent and query.exception() is None:
        # What Spark says of its tasks may come too late on a busy machine. A process that was killed may be named for
        # a moment longer.
        if len(killed) < 6 and (now > seen or in_flight(application)) and (pid := worker_pid(query)) not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
            seen = now
    application.finish(query)
    assert len(killed) >= 5
    assert_exact(application.lines(), texts)


def in_flight(application: Application) -> bool:
    """Say whether a task of Spark runs now; it does little but wait for the worker."""
    tracker = application.spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return any(stage is not None and stage.numActiveTasks for stage in stages)


def test_a_copy_of_a_task_that_was_killed_before_the_commit_is_not_used(application: Application) -> None:
    texts = [" ".join(string.ascii_lowercase)] * 50
    marker = application.checkpoint / "trip"
    reached = marker.with_suffix(".reached")
    application.send(texts[:25])
    query = application.start(app=topology("trip", str(marker)))
    application.finish(query)
    worker = worker_pid(query)
    # The worker has filed its copy of one bucket; then the tasks are killed, and Spark repeats them.
    marker.touch()
    application.send(texts[25:])
    application.wait_until(reached.exists, "the worker to hold up calls", 300.0)
    spark = application.spark.sparkContext._jsc.sc()
    killed = [task for task in range(10_000) if spark.killTaskAttempt(task, True, "a test")]
    reached.unlink()
    assert killed
    application.finish(query)
    assert worker_pid(query) == worker, "the end of a task does not concern the worker"
    assert_exact(application.lines(), texts)


def test_failures_of_user_code(application: Application) -> None:
    application.send(["one two", "three !raise four", "five"])
    query = application.start()
    application.finish(query)
    progress = query.progress()
    assert (progress.messages_out, progress.dead_letters, progress.messages_in) == (5, 1, 3)
    assert len(list((application.checkpoint / "dead-letters").iterdir())) == 1


def test_rows_that_are_lost_between_levels_stop_the_query(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(rows: Rows) -> tuple[list[StagedFile], Accounts]:
        files, accounts = read_rows(rows)
        (taken, *_) = (account.taken for account in accounts.values() if account.taken)
        taken[next(iter(taken))] -= 1  # as if the task had not got it
        return files, accounts

    monkeypatch.setattr(publish, "read_rows", losing)
    texts = ["apple bee", "ant apple cat"]
    application.send(texts)
    query = application.start()
    application.wait_until(lambda: query.exception() is not None, "the query to stop", 300.0)
    reason = "I902 the message counts of micro-batch 0 do not agree, so nothing of it was published; "
    assert str(query.exception()).startswith(reason)
    assert application.lines() == []
    query.stop()
    monkeypatch.undo()
    application.finish(application.start())
    assert_exact(application.lines(), texts)


def test_on_error_fail_stops_with_the_first_dead_letter(application: Application) -> None:
    application.send(["one two", "three !raise four"])
    query = application.start(on_error="fail")
    application.wait_until(lambda: query.exception() is not None, "the query to stop", 300.0)
    assert str(query.exception()) == (
        "R611 the query stopped; C501 told to\n"
        '  | File "app.py", line 1\n'
        "  fix: correct the user code and run again, or run with --on-error dead_letter"
    )
    assert application.lines() == []


def test_stage_without_state_keeps_the_order(application: Application) -> None:
    texts = [f"{number}" for number in range(5000)]
    for start in range(0, 5000, 500):
        application.send(texts[start : start + 500])
    query = application.start(SPLITTING)
    application.finish(query)
    assert application.lines() == texts


def test_a_worker_that_does_not_start_is_told_before_the_query(application: Application) -> None:
    with pytest.raises(RunError) as caught:
        application.start(app=topology("exit"))
    assert str(caught.value).startswith('W401 worker "main" did not start; it exited with status 7 before it served\n')
    assert "Traceback" not in str(caught.value)


def test_a_hung_worker_stops_the_query_with_its_code(application: Application) -> None:
    application.send(["!hang"])
    query = application.start(app=topology(deadline_ms=300))
    application.wait_until(lambda: query.exception() is not None, "the query to stop", 300.0)
    error = query.exception()
    assert error is not None
    assert str(error).startswith('W411 worker "main" gave no answer within 0.3 s on stage "s0"')
    assert error.exit_code == 4


def test_stop_ends_the_worker(application: Application) -> None:
    query = application.start()
    pid = worker_pid(query)
    query.stop()
    assert not Path(f"/proc/{pid}").exists()


def test_another_journal_is_refused(application: Application) -> None:
    application.send(["one"])
    query = application.start()
    application.finish(query)
    query.stop()
    shutil.rmtree(application.checkpoint / "journal")
    application.send(["one", "two"])
    query = application.start()
    application.wait_until(lambda: query.exception() is not None, "the query to stop", 300.0)
    text = str(query.exception())
    assert text.startswith(
        f"R698 journal {application.checkpoint / 'journal'} is damaged; the checkpoint refers to journal "
    )
    assert "Traceback" not in text


def test_a_session_has_no_functions_of_machine_learning(spark: Any) -> None:
    """`SessionStart` hides them, since their registration takes 0.7 s of each start."""
    registry = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.analysis.FunctionRegistry$")
    functions = registry.getField("MODULE$").get(None).internal().listFunction().mkString(" ")
    assert "vector_to_array" not in functions
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    assert "Hiding" not in loader.getClass().getName()
