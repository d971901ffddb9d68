"""States that end or hang their worker when they are written or read: the program of `poison`, without Spark."""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest
from java_client import BucketResult, JavaBuckets, JavaChannel, JavaClient, outputs_of, text

from wallaroo.message.frame import DEAD_LETTER_PORT, FRAMED, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.call import failure_of
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.ending import marks
from wallaroo_runtime.worker.spec import WorkerSpec

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).with_name("poison")
BUCKETS = 1
DEADLINE = 1.0  # the shortest that there is
SLACK, RESTART = 0.5, 10.0  # seconds: a deadline is looked at a few times within it; a start on a busy machine


@cache
def topology_of(language: str) -> Topology:
    return load_application(str(FOLDER / "app.py" if language == "python" else FOLDER), [], "", "").topology


class Counts:
    """The program's one bucket, and its log."""

    def __init__(
        self, java: JavaClient, language: str, tmp_path: Path, executor: ProcessId, deadline: float = DEADLINE
    ) -> None:
        topology = topology_of(language)
        (worker,) = topology.workers
        # One byte of cache: the worker reads the bucket from its log for each call.
        spec = WorkerSpec(
            topology.name, "main", worker.command, worker.directory, interface_hash=worker.interface_hash,
            deadline_ms=int(1000 * deadline), processes=1, run=str(tmp_path), restart_limit=2, cache_bytes=1,
        )  # fmt: skip
        self.channel = JavaChannel(java, spec, executor)
        plan = compile_topology(topology, shuffle_partitions=1, buckets_per_partition=BUCKETS)
        self.openings = [
            pb.Opening(application=plan.application, query="q", stage=stage_message(level[0])) for level in plan.levels
        ]
        self.port, self.counter, self.nonce, self.log = plan.ports["0/sources/0"], 0, 0, list[bytes]()
        self.sequence = 0

    def before(self, *texts: str) -> list[pb.DeadLetter]:
        """Run messages up to the shuffle; returns the dead letters."""
        return dead(self._first(texts))

    def frame(self, texts: Sequence[str]) -> bytes:
        """Return messages as the gateway journals them."""
        wire = b"".join(len(text).to_bytes(4, "big") + text.encode() for text in texts)
        frame = write_frame(FrameHeader(self.port, len(texts), self.sequence, encoding=FRAMED, timestamp_ms=1), [wire])
        self.sequence += len(texts)
        return frame

    def _first(self, texts: Sequence[str]) -> list[pb.Output]:
        (outputs,) = self.channel.data(self.openings[0], [self.frame(texts)])
        return outputs

    def run(self, *texts: str) -> BucketResult:
        """Run messages and commit what they change."""
        keyed = self._first(texts)
        task = JavaBuckets(self.channel, self.openings[1], 0)
        task.counter, task.nonce, task.log = self.counter, self.nonce, self.log
        try:
            result = task.commit(task.run([each.frame for each in keyed]))
        finally:
            task.close()
        self.counter, self.nonce, self.log = task.counter, task.nonce, task.log
        return result


def lines(result: BucketResult) -> list[str]:
    """Return the lines for the sink."""
    frames = [output.frame for output in result.outputs if output.port != DEAD_LETTER_PORT]
    return sorted(value.decode().strip() for frame in frames for value in read_frame(frame).values())


def dead(outputs: Iterable[pb.Output]) -> list[pb.DeadLetter]:
    """Return the dead letters among outputs."""
    frames = [output.frame for output in outputs if output.port == DEAD_LETTER_PORT]
    return [pb.DeadLetter.FromString(value) for frame in frames for value in read_frame(frame).values()]


def opened(result: BucketResult) -> list[pb.DeadLetter]:
    """Return the dead letters of a call."""
    return dead(result.outputs)


def letters(result: BucketResult) -> list[tuple[str, str, int]]:
    """Return code, key and sequence of each dead letter."""
    return [(letter.code, letter.key.decode(), letter.sequence) for letter in opened(result)]


@pytest.fixture(params=["python", "go"])
def counts(request: pytest.FixtureRequest, java_client: JavaClient, tmp_path: Path, executor: ProcessId) -> Counts:
    """Return the program in each language."""
    return Counts(java_client, request.param, tmp_path, executor)


def test_the_message_that_spoils_its_state_is_found_and_nothing_else_lost(counts: Counts) -> None:
    counts.run("a ok", "b ok")
    result = counts.run("a ok", "b save-exit", "b ok", "c save-hang", "c ok", "b save-exit", "a ok")
    assert letters(result) == [("C508", "b", 3), ("C509", "c", 5), ("C508", "b", 7)]
    assert lines(result) == ["a 2", "a 3", "b 2", "c 1"]
    assert lines(counts.run("a ok", "b ok", "c ok")) == ["a 4", "b 3", "c 2"], "each key has the state of before"
    assert counts.channel.connection().generation == 1 + 3 + 1, "one restart each, and one for the first look"


@pytest.mark.parametrize(("action", "reason"), [("exit", "it exited with status 3"), ("wait", "no answer within 1 s")])
def test_a_state_that_cannot_be_read_without_that_is_named(counts: Counts, action: str, reason: str) -> None:
    counts.run("a ok", f"b load-{action}")
    with pytest.raises(RunError) as caught:
        counts.run("a ok", "b ok")
    quoted = "'b'" if counts.channel.spec.command[0] == "{python}" else '"b"'
    assert str(caught.value) == (
        f'W415 worker "main" ended while it read the state of step "count", key {quoted}; {reason}\n'
        "  fix: correct the code that serializes and deserializes this type; the run continues from the checkpoint"
    )
    for _ in range(2):  # Spark repeats the task, which meets the same again and not the end of the worker's restarts
        with pytest.raises(RunError, match="W415"):
            counts.run("a ok", "b ok")


@pytest.mark.parametrize("number", [3, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize("language", ["python", "go"])
def test_messages_that_hang_in_one_call_end_in_bounded_time(
    number: int, language: str, java_client: JavaClient, tmp_path: Path, executor: ProcessId
) -> None:
    counts = Counts(java_client, language, tmp_path, executor, 2 * DEADLINE)
    counts.run("a ok")
    begin = time.monotonic()
    result = counts.run(*["a ok", "b state-wait"] * number)
    seconds = time.monotonic() - begin
    assert letters(result) == [("C509", "b", at) for at in range(2, 2 + 2 * number, 2)]
    assert lines(result) == sorted(f"a {count}" for count in range(2, 2 + number))
    reasons = [letter.error for letter in opened(result)]
    assert reasons == ["no answer within 2 s"] + ["no answer within 1 s"] * (number - 1)
    assert seconds < 2 * DEADLINE + (number - 1) * (DEADLINE + SLACK) + number * RESTART


@pytest.mark.parametrize("counts", ["python"], indirect=True)
def test_a_call_may_wait_for_its_turn_longer_than_a_deadline(counts: Counts, wait_until: Callable[..., None]) -> None:
    java, sessions = counts.channel.java, []
    for _ in range(2):
        sessions.append(counts.channel.open(counts.openings[0], has_state=False))
        java.ask(op="send", session=sessions[-1], frames=text(counts.frame(["a first-slow"] * 30)))
        directory = counts.channel.connection().directory
        wait_until(lambda at=directory: any(mark.message for _, mark in marks(at)), "a message to be in flight")
    for session in reversed(sessions):
        outputs = outputs_of(java.ask(op="receive", session=session))
        assert sum(read_frame(each.frame).header.count for each in outputs) == 30
        java.ask(op="close", session=session)
    assert counts.channel.connection().generation == 1


@pytest.mark.parametrize("counts", ["go"], indirect=True)
def test_goexit_costs_one_message(counts: Counts) -> None:
    result = counts.run("a ok", "b state-goexit", "b ok", "a ok")
    assert letters(result) == [("C508", "b", 1)]
    assert lines(result) == ["a 1", "a 2", "b 1"]
    (first, *others) = counts.before("a ok", "c first-goexit", "b ok")
    assert (first.code, first.error) == ("C508", "the worker ended while it ran this message; it exited with status 70")
    assert not others


@pytest.mark.parametrize("counts", ["python"], indirect=True)
def test_closerange_costs_one_message(counts: Counts) -> None:
    (first, *others) = counts.before("a ok", "c first-close", "b ok")
    assert first.code == "C501"
    assert "os.closerange(3, 1000) would close the worker's own connections" in first.error
    assert not others
    assert lines(counts.run("a ok")) == ["a 1"]
    assert counts.channel.connection().generation == 1


def test_a_worker_that_ends_without_memory_says_so(
    java_client: JavaClient, tmp_path: Path, executor: ProcessId
) -> None:
    counts = Counts(java_client, "go", tmp_path, executor, 60.0)
    counts.run("a ok")
    (letter,) = opened(counts.run("a ok", "a state-memory", "a ok"))
    assert (letter.code, letter.sequence) == ("C508", 2)
    remedy = "give it more memory, keep less in a state, or give a lower --conf spark.wallaroo.state.cacheBytes=SIZE"
    assert re.search(rf'; it exited with status 2; it printed ".*memory.*"; {remedy}$', letter.error), letter.error


def test_a_worker_that_lacks_memory_outside_of_user_code_is_no_bug_of_ours() -> None:
    failure = failure_of(MemoryError())
    assert (failure.code, failure.message) == (
        "W417", "a worker had no memory left; MemoryError outside of user code"
    )  # fmt: skip
    assert "spark.wallaroo.state.cacheBytes" in failure.fix
