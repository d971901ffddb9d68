"""States that end or hang their worker when they are written or read: the program of `poison`, without Spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wallaroo.frame import DEAD_LETTER_PORT, FRAMED, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.deploy.application import load_application
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.remote import OutputPlace
from wallaroo_runtime.spark.level import Attempt, levels_of
from wallaroo_runtime.worker.channel import WorkerChannel
from wallaroo_runtime.worker.owner import Owner
from wallaroo_runtime.worker.process import ProcessCall
from wallaroo_runtime.worker.session import BucketResult, StateSession, Version
from wallaroo_runtime.worker.spec import WorkerSpec

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).with_name("poison")
BUCKETS = 1


class Counts:
    """The program's one bucket, and its log."""

    def __init__(self, language: str, tmp_path: Path, executor: Owner) -> None:
        app = FOLDER / "app.py" if language == "python" else FOLDER
        topology = load_application(str(app), [], "", "").topology
        (worker,) = topology.workers
        # One byte of cache: the worker reads the bucket from its log for each call.
        spec = WorkerSpec(
            topology.name, "main", worker.command, worker.directory, interface_hash=worker.interface_hash,
            deadline_ms=2000, processes=1, run=str(tmp_path), restart_limit=2, cache_bytes=1,
        )  # fmt: skip
        self.channel = WorkerChannel(spec, executor)
        plan = compile_topology(topology, shuffle_partitions=1, buckets_per_partition=BUCKETS)
        levels = levels_of(plan, {"main": spec}, journals=(), output=OutputPlace())
        attempt = Attempt("q", 0, 0, 0, 0)
        self.openings = [level.opening(level.stages[0], attempt) for level in levels]
        self.port, self.version, self.log = plan.ports["0/sources/0"], Version(), list[bytes]()
        self.sequence = 0

    def run(self, *texts: str) -> BucketResult:
        """Run messages and commit what they change."""
        wire = b"".join(len(text).to_bytes(4, "big") + text.encode() for text in texts)
        frame = write_frame(FrameHeader(self.port, len(texts), self.sequence, encoding=FRAMED, timestamp_ms=1), [wire])
        self.sequence += len(texts)
        (keyed,) = ProcessCall(self.channel, self.openings[0]).run([frame])
        session = StateSession(self.channel, self.openings[1])
        result = session.run_bucket(0, self.version, [each.frame for each in keyed], lambda: self.log, False)
        session.close()
        self.version, self.log = result.version, [*self.log, *result.changes]
        return result


def lines(result: BucketResult) -> list[str]:
    """Return the lines for the sink."""
    frames = [output.frame for output in result.outputs if output.port != DEAD_LETTER_PORT]
    return sorted(value.decode().strip() for frame in frames for value in read_frame(frame).values())


def letters(result: BucketResult) -> list[tuple[str, str, int]]:
    """Return code, key and sequence of each dead letter."""
    frames = [output.frame for output in result.outputs if output.port == DEAD_LETTER_PORT]
    found = [pb.DeadLetter.FromString(value) for frame in frames for value in read_frame(frame).values()]
    return [(letter.code, letter.key.decode(), letter.sequence) for letter in found]


@pytest.fixture(params=["python", "go"])
def counts(request: pytest.FixtureRequest, tmp_path: Path, plain_spec: WorkerSpec, executor: Owner) -> Iterator[Counts]:
    """Give the program in each language."""
    yield Counts(request.param, tmp_path, executor)


def test_the_message_that_spoils_its_state_is_found_and_nothing_else_lost(counts: Counts) -> None:
    counts.run("a ok", "b ok")
    result = counts.run("a ok", "b save-exit", "b ok", "c save-hang", "c ok", "b save-exit", "a ok")
    assert letters(result) == [("C508", "b", 3), ("C509", "c", 5), ("C508", "b", 7)]
    assert lines(result) == ["a 2", "a 3", "b 2", "c 1"]
    assert lines(counts.run("a ok", "b ok", "c ok")) == ["a 4", "b 3", "c 2"], "each key has the state of before"
    assert counts.channel.endpoints().connection.generation == 1 + 3 + 1, "one restart each, and one for the first look"


@pytest.mark.parametrize(("action", "reason"), [("exit", "it exited with status 3"), ("hang", "no answer within 2 s")])
def test_a_state_that_cannot_be_read_without_that_is_named(counts: Counts, action: str, reason: str) -> None:
    counts.run("a ok", f"b load-{action}")
    with pytest.raises(RunError) as caught:
        counts.run("a ok", "b ok")
    quoted = "'b'" if counts.channel.spec.command[0] == "{python}" else '"b"'
    assert str(caught.value) == (
        f'W415 worker "main" ended while it read the state of step "count", key {quoted}; {reason}\n'
        "  fix: correct what serializes and deserializes this type; the run continues from the checkpoint"
    )
    for _ in range(2):  # Spark repeats the task, which meets the same again and not the end of the worker's restarts
        with pytest.raises(RunError, match="W415"):
            counts.run("a ok", "b ok")
