"""Calls to a real worker process: streaming, bounded bytes, state, death, hanging, refusal."""

import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from wallaroo.message.frame import DEAD_LETTER_PORT, FRAMED, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.worker.channel import WorkerChannel, take_endings
from wallaroo_runtime.worker.owner_process import Owner
from wallaroo_runtime.worker.process import ProcessCall
from wallaroo_runtime.worker.session import BucketResult, StateSession, Version
from wallaroo_runtime.worker.spec import WorkerSpec
from wallaroo_runtime.worker.split import WorkerSplitter

pytestmark = pytest.mark.slow
SPLIT = pb.Stage(id="s0", bucket_count=4, frame_bytes=1 << 20)
SPLIT.nodes.add(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0)
SPLIT.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION_MULTI, inputs=["0/sources/0"])
SPLIT.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_KEY, inputs=["0/steps/0"], port=1)
COUNT = pb.Stage(id="s1", bucket_count=4, frame_bytes=1 << 20)
COUNT.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_STATE_COMPUTATION, port=1, state="counts", state_port=1)
COUNT.nodes.add(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=["0/steps/1"], port=2)


@pytest.fixture
def channel(plain_spec: WorkerSpec, executor: Owner) -> WorkerChannel:
    """Return a channel to a worker of its own."""
    return WorkerChannel(plain_spec, executor)


def journal_frame(texts: list[str], sequence: int) -> bytes:
    """Return texts as the gateway journals them."""
    data = b"".join(len(text.encode()).to_bytes(4, "big") + text.encode() for text in texts)
    return write_frame(FrameHeader(0, len(texts), sequence, encoding=FRAMED, timestamp_ms=1), [data])


def opening(stage: pb.Stage) -> pb.Opening:
    """Return the opening of a stage's stream."""
    return pb.Opening(application="counts", query="q", stage=stage)


def words_of(outputs: list[pb.Output]) -> list[str]:
    """Return the words in KEY frames."""
    return [value.decode() for output in outputs for value in read_frame(output.frame).values()]


def test_outputs_come_in_order(channel: WorkerChannel) -> None:
    inputs = [journal_frame([f"a{number}", f"b{number}"], 2 * number) for number in range(50)]
    outputs = list(ProcessCall(channel, opening(SPLIT), window=200).run(inputs))
    assert [sorted(words_of(group)) for group in outputs] == [[f"a{n}", f"b{n}"] for n in range(50)]


def test_bytes_in_flight_are_bounded(channel: WorkerChannel) -> None:
    taken = answered = 0
    frames = [journal_frame(["x" * 1000], number) for number in range(100)]

    def inputs() -> Iterator[bytes]:
        nonlocal taken
        for frame in frames:
            taken += 1
            assert taken - answered <= 5, "three in flight, one answered, one held"
            yield frame

    for _ in ProcessCall(channel, opening(SPLIT), window=3200).run(inputs()):
        answered += 1
    assert answered == 100


def test_a_killed_worker_loses_and_repeats_nothing(channel: WorkerChannel) -> None:
    inputs = [journal_frame([f"w{number}"] * 3, 3 * number) for number in range(60)]
    words: list[str] = []
    killed: set[int] = set()
    take_endings()
    for number, outputs in enumerate(ProcessCall(channel, opening(SPLIT), window=1000).run(inputs)):
        words += words_of(outputs)
        if number % 10 == 5 and number < 55:
            pid = channel.endpoints().connection.pid  # on a slow machine it may be the one that was killed before
            os.kill(pid, signal.SIGKILL)  # the next calls are in flight
            killed.add(pid)
    told = []
    for text in take_endings().values():
        found = re.fullmatch(
            r'worker "main", process (\d+): it was ended by SIGKILL; (no messages were|1 message was|\d+ messages were)'
            r" in flight; process \d+ repeats what was not answered",
            text,
        )
        assert found, text
        told.append(int(found[1]))
    assert len(set(told)) == len(told) > 1, "each is told once"
    assert killed.issuperset(told), "a process that was killed before the task had reached it is missing"
    assert take_endings() == {}
    assert words == [f"w{number}" for number in range(60) for _ in range(3)]


def test_the_worker_has_no_deadline_while_the_task_waits_for_input(plain_spec: WorkerSpec, executor: Owner) -> None:
    """The task waits for a broker: what it has sent is answered, and it has not looked."""
    channel = WorkerChannel(replace(plain_spec, deadline_ms=1500), executor)

    def inputs() -> Iterator[bytes]:
        yield journal_frame(["first"], 0)
        yield journal_frame(["second"], 1)
        time.sleep(4)
        yield journal_frame(["third"], 2)

    take_endings()
    outputs = list(ProcessCall(channel, opening(SPLIT)).run(inputs()))
    assert [words_of(group) for group in outputs] == [["first"], ["second"], ["third"]]
    assert take_endings() == {}


def test_dead_letters_are_outputs(channel: WorkerChannel) -> None:
    ((outputs),) = ProcessCall(channel, opening(SPLIT)).run([journal_frame(["one !raise two"], 7)])
    (letter,) = [output for output in outputs if output.port == DEAD_LETTER_PORT]
    frame = read_frame(letter.frame)
    assert pb.DeadLetter.FromString(frame.values()[0]).code == "C501"
    assert frame.header.sequence == 7


def test_a_hung_worker_is_killed_and_then_an_error(plain_spec: WorkerSpec, executor: Owner) -> None:
    channel = WorkerChannel(replace(plain_spec, deadline_ms=300), executor)
    with pytest.raises(RunError) as caught:
        list(ProcessCall(channel, opening(SPLIT)).run([journal_frame(["!hang"], 0)]))
    assert str(caught.value).startswith('W411 worker "main" gave no answer within 0.3 s on stage "s0"')
    assert channel.endpoints().connection.generation >= 2


@pytest.mark.parametrize(("word", "code"), [("!hang", "C509"), ("!exit", "C508")])
def test_a_worker_may_write_the_in_flight_file_by_pwrite(
    plain_spec: WorkerSpec, executor: Owner, word: str, code: str
) -> None:
    channel = WorkerChannel(replace(plain_spec, args=("pwrite",), deadline_ms=1500), executor)
    frames = [journal_frame(["a", f"b {word}", "c"], 0), journal_frame(["d"], 3)]
    outputs = [each for group in ProcessCall(channel, opening(SPLIT)).run(frames) for each in group]
    kept = [each for each in outputs if each.port != DEAD_LETTER_PORT]
    (letter,) = [each for each in outputs if each.port == DEAD_LETTER_PORT]
    assert sorted(words_of(kept)) == ["a", "c", "d"]
    assert pb.DeadLetter.FromString(read_frame(letter.frame).values()[0]).code == code
    assert read_frame(letter.frame).header.sequence == 1


def test_a_worker_that_writes_no_in_flight_file_names_no_message(plain_spec: WorkerSpec, executor: Owner) -> None:
    spec = replace(plain_spec, deadline_ms=1500, restart_limit=3)
    with pytest.raises(RunError, match='W406 worker "main" ended'):
        list(ProcessCall(WorkerChannel(spec, executor), opening(SPLIT)).run([journal_frame(["a !exit"], 0)]))
    # A worker that was lost for another reason is repeated, as `test_a_killed_worker_loses_and_repeats_nothing` shows.


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"args": ("protocol-2",)}, 'W416 worker "main" speaks protocol 2 to 3; the runtime speaks 1'),
        (
            {"interface_hash": "sha256:1"},
            'W403 worker "main" hosts another application; its interface hash is sha256:000',
        ),
    ],
)
def test_handshake_refuses(plain_spec: WorkerSpec, executor: Owner, change: dict, text: str) -> None:
    with pytest.raises(RunError) as caught:
        WorkerChannel(replace(plain_spec, **change), executor).endpoints()
    assert str(caught.value).startswith(text)


def test_a_stage_that_needs_what_the_worker_lacks_is_refused(plain_spec: WorkerSpec, executor: Owner) -> None:
    window = pb.Stage(id="s1", nodes=[pb.Node(path="0/steps/0", kind=pb.NODE_KIND_WINDOW, codec="protobuf:a.B")])
    for args, names in (((), '"crossing", "protobuf", "windows"'), (("windows",), '"crossing", "protobuf"')):
        channel = WorkerChannel(replace(plain_spec, args=args), executor)
        with pytest.raises(RunError) as caught:
            StateSession(channel, opening(window)).run_bucket(0, Version(), [], list, wants_snapshot=False)
        text = f'W416 worker "main" lacks the capability {names}, which stage "s1" needs\n'
        assert (
            str(caught.value)
            == f"{text}  fix: build the worker with an SDK of this release, or do without what needs it"
        )
    checking = WorkerChannel(replace(plain_spec, check_persist=True), executor)
    with pytest.raises(RunError, match='W416 .* lacks the capability "check_persist", which --check-persist needs'):
        list(ProcessCall(checking, opening(SPLIT)).run([journal_frame(["one"], 0)]))


class Log:
    """A bucket's log, as Spark would keep it."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.reads = 0

    def load(self) -> list[bytes]:
        self.reads += 1
        return self.entries

    def take(self, result: BucketResult) -> Version:
        """Commit a result."""
        self.entries = result.changes if result.is_snapshot else self.entries + result.changes
        return result.version


def counted(outputs: list[pb.Output]) -> list[tuple[str, int, int]]:
    """Return word, count and sum of random numbers of each line."""
    lines = [value.decode() for output in outputs for value in read_frame(output.frame).values()]
    found = [re.fullmatch(r"(\S+) => (\d+) (\d+)\n", line) for line in lines]
    return [(match[1], int(match[2]), int(match[3])) for match in found if match]


def keyed(channel: WorkerChannel, text: str) -> list[bytes]:
    """Return the KEY frames of a text whose words begin with one letter."""
    (outputs,) = ProcessCall(channel, opening(SPLIT)).run([journal_frame([text], 0)])
    return [output.frame for output in outputs]


def test_state_is_cached_until_the_worker_dies(channel: WorkerChannel) -> None:
    log, frames, session = Log(), keyed(channel, "at at an"), StateSession(channel, opening(COUNT))
    version = log.take(session.run_bucket(1, Version(), frames, log.load, wants_snapshot=False))
    second = session.run_bucket(1, version, frames, log.load, wants_snapshot=False)
    assert [count for _, count, _ in counted(second.outputs)] == [3, 4, 2]
    assert log.reads == 0
    version = log.take(second)
    os.kill(channel.endpoints().connection.pid, signal.SIGKILL)
    third = session.run_bucket(1, version, frames, log.load, wants_snapshot=True)
    assert [count for _, count, _ in counted(third.outputs)] == [5, 6, 3]
    assert (log.reads, third.is_snapshot, third.keys) == (1, True, 1)
    session.close()


def test_a_copy_that_was_not_committed_is_never_used(channel: WorkerChannel) -> None:
    log, frames, session = Log(), keyed(channel, "at"), StateSession(channel, opening(COUNT))
    version = log.take(first := session.run_bucket(1, Version(), frames, log.load, wants_snapshot=False))
    session.run_bucket(1, version, frames, log.load, wants_snapshot=False)  # reply lost: the task was killed
    again = StateSession(channel, opening(COUNT)).run_bucket(1, version, frames, log.load, wants_snapshot=False)
    assert log.reads == 1
    assert counted(again.outputs)[0][1] == 2
    version = log.take(again)
    os.kill(channel.endpoints().connection.pid, signal.SIGKILL)
    after = session.run_bucket(1, version, frames, log.load, wants_snapshot=False)
    assert counted(first.outputs)[0][2] < counted(again.outputs)[0][2] < counted(after.outputs)[0][2]
    assert counted(after.outputs)[0][2] - counted(again.outputs)[0][2] < 1000, "state continues from the output"
    session.abandon()


def test_a_worker_cuts_bytes(channel: WorkerChannel) -> None:
    connection = channel.endpoints().connection
    splitter = WorkerSplitter(connection.target, "0/sources/0", 1000)
    assert splitter.split(b"one\ntwo\nthr") == ([4, 4], 0)
    os.kill(connection.pid, signal.SIGKILL)
    assert splitter.split(b"one\n") == ([4], 0), "it waits for the restart"
    with pytest.raises(RunError) as caught:
        splitter.split(b"!refuse")
    assert str(caught.value) == (
        'C501 Lines: told to\n  | File "app.py", line 2\n'
        "  fix: correct the user code; `wallaroo dead-letters` shows the message"
    )
    splitter.close()
