"""Calls of the Java client to a real worker process: streaming, state, death, hanging, refusal."""

import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from java_client import BucketResult, JavaBuckets, JavaChannel, JavaClient

from wallaroo.message.frame import DEAD_LETTER_PORT, FRAMED, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.worker.capability import check_capabilities
from wallaroo_runtime.worker.idempotent_call import WorkerSplitter
from wallaroo_runtime.worker.spec import WorkerSpec

pytestmark = pytest.mark.slow
SPLIT = pb.Stage(id="s0", bucket_count=4, frame_bytes=1 << 20)
SPLIT.nodes.add(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0)
SPLIT.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION_MULTI, inputs=["0/sources/0"])
SPLIT.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_KEY, inputs=["0/steps/0"], port=1)
COUNT = pb.Stage(id="s1", bucket_count=4, frame_bytes=1 << 20)
COUNT.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_STATE_COMPUTATION, port=1, state="counts", state_port=1)
COUNT.nodes.add(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=["0/steps/1"], port=2)


@pytest.fixture
def channel(java_client: JavaClient, plain_spec: WorkerSpec, executor: ProcessId) -> JavaChannel:
    """Return the way to a worker of its own."""
    return JavaChannel(java_client, plain_spec, executor)


def changed(channel: JavaChannel, **change: object) -> JavaChannel:
    return replace(channel, spec=replace(channel.spec, **change))  # type: ignore[arg-type]


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


def test_outputs_come_in_order(shared_channel: JavaChannel) -> None:
    inputs = [journal_frame([f"a{number}", f"b{number}"], 2 * number) for number in range(50)]
    outputs = list(shared_channel.data(opening(SPLIT), inputs, 9))
    assert [sorted(words_of(group)) for group in outputs] == [[f"a{n}", f"b{n}"] for n in range(50)]


def test_a_killed_worker_loses_and_repeats_nothing(shared_channel: JavaChannel) -> None:
    inputs = [journal_frame([f"w{number}"] * 3, 3 * number) for number in range(60)]
    words: list[str] = []
    killed: set[int] = set()
    shared_channel.java.take_endings()
    for number, outputs in enumerate(shared_channel.data(opening(SPLIT), inputs, 9)):
        words += words_of(outputs)
        if number % 10 == 5 and number < 50:
            pid = shared_channel.connection().pid  # on a slow machine it may be the one that was killed before
            os.kill(pid, signal.SIGKILL)  # the next calls are in flight
            killed.add(pid)
    told = []
    for text in shared_channel.java.take_endings().values():
        found = re.fullmatch(
            r'worker "main", process (\d+): it was ended by SIGKILL; (no messages were|1 message was|\d+ messages were)'
            r" in flight; process \d+ repeats what was not answered",
            text,
        )
        assert found, text
        assert shared_channel.java.log().count(text) == 1, "nobody else reports it where the application is applied"
        told.append(int(found[1]))
    assert len(set(told)) == len(told) > 1, "each is told once"
    assert killed.issuperset(told), "a process that was killed before the task had reached it is missing"
    assert shared_channel.java.take_endings() == {}
    assert words == [f"w{number}" for number in range(60) for _ in range(3)]


def test_the_worker_has_no_deadline_while_the_task_waits_for_input(channel: JavaChannel) -> None:
    """The task waits for a broker: what it has sent is answered, and it has not looked."""
    channel = changed(channel, deadline_ms=1500)

    def inputs() -> Iterator[bytes]:
        yield journal_frame(["first"], 0)
        yield journal_frame(["second"], 1)
        time.sleep(4)
        yield journal_frame(["third"], 2)

    channel.java.take_endings()
    outputs = list(channel.data(opening(SPLIT), inputs()))
    assert [words_of(group) for group in outputs] == [["first"], ["second"], ["third"]]
    assert channel.java.take_endings() == {}


def test_dead_letters_are_outputs(shared_channel: JavaChannel) -> None:
    ((outputs),) = shared_channel.data(opening(SPLIT), [journal_frame(["one !raise two"], 7)])
    (letter,) = [output for output in outputs if output.port == DEAD_LETTER_PORT]
    frame = read_frame(letter.frame)
    assert pb.DeadLetter.FromString(frame.values()[0]).code == "C501"
    assert frame.header.sequence == 7


def test_a_hung_worker_is_killed_and_then_an_error(channel: JavaChannel) -> None:
    channel = changed(channel, deadline_ms=300)
    stage = pb.Stage.FromString(SPLIT.SerializeToString())
    stage.id = "s7"
    with pytest.raises(RunError) as caught:
        list(channel.data(opening(stage), [journal_frame(["!hang"], 0)]))
    assert str(caught.value).startswith('W411 worker "main" gave no answer within 0.3 s on stage "s7"')
    assert channel.connection().generation >= 2


@pytest.mark.parametrize(("word", "code"), [("!hang", "C509"), ("!exit", "C508")])
def test_a_worker_may_write_the_in_flight_file_by_pwrite(channel: JavaChannel, word: str, code: str) -> None:
    channel = changed(channel, args=("pwrite",), deadline_ms=1500)
    frames = [journal_frame(["a", f"b {word}", "c"], 0), journal_frame(["d"], 3)]
    outputs = [each for group in channel.data(opening(SPLIT), frames) for each in group]
    kept = [each for each in outputs if each.port != DEAD_LETTER_PORT]
    (letter,) = [each for each in outputs if each.port == DEAD_LETTER_PORT]
    assert sorted(words_of(kept)) == ["a", "c", "d"]
    assert pb.DeadLetter.FromString(read_frame(letter.frame).values()[0]).code == code
    assert read_frame(letter.frame).header.sequence == 1


def test_a_worker_that_writes_no_in_flight_file_names_no_message(channel: JavaChannel) -> None:
    channel = changed(channel, deadline_ms=1500, restart_limit=3)
    with pytest.raises(RunError, match='W406 worker "main" ended'):
        list(channel.data(opening(SPLIT), [journal_frame(["a !exit"], 0)]))
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
def test_handshake_refuses(channel: JavaChannel, change: dict[str, object], text: str) -> None:
    with pytest.raises(RunError) as caught:
        list(changed(channel, **change).data(opening(SPLIT), [journal_frame(["one"], 0)]))
    assert str(caught.value).startswith(text)


def test_a_stage_that_needs_what_the_worker_lacks_is_refused(plain_spec: WorkerSpec) -> None:
    window = pb.Stage(id="s1", nodes=[pb.Node(path="0/steps/0", kind=pb.NODE_KIND_WINDOW, codec="protobuf:a.B")])
    for offered, names in (([], '"crossing", "protobuf", "windows"'), (["windows"], '"crossing", "protobuf"')):
        with pytest.raises(RunError) as caught:
            check_capabilities(plain_spec, window, offered)
        text = f'W416 worker "main" lacks the capability {names}, which stage "s1" needs\n'
        assert (
            str(caught.value)
            == f"{text}  fix: build the worker with an SDK of this release, or leave out the feature that needs it"
        )
    with pytest.raises(RunError, match='W416 .* lacks the capability "check_persist", which --debug needs'):
        check_capabilities(replace(plain_spec, check_persist=True), SPLIT, [])


def counted(result: BucketResult) -> list[tuple[str, int, int]]:
    """Return word, count and sum of random numbers of each line."""
    found = [re.fullmatch(r"(\S+) => (\d+) (\d+)\n", line) for line in words_of(result.outputs)]
    return [(match[1], int(match[2]), int(match[3])) for match in found if match]


def keyed(channel: JavaChannel, text: str) -> list[bytes]:
    """Return the KEY frames of a text whose words begin with one letter."""
    (outputs,) = channel.data(opening(SPLIT), [journal_frame([text], 0)])
    return [output.frame for output in outputs]


def test_state_is_cached_until_the_worker_dies(shared_channel: JavaChannel) -> None:
    frames, task = keyed(shared_channel, "at at an"), JavaBuckets(shared_channel, opening(COUNT), 1)
    first, second = (task.commit(task.run(frames)) for _ in range(2))
    assert [count for _, count, _ in counted(second)] == [3, 4, 2]
    assert first.reads == second.reads == 0
    os.kill(shared_channel.connection().pid, signal.SIGKILL)
    third = task.run(frames, wants_snapshot=True)
    assert [count for _, count, _ in counted(third)] == [5, 6, 3]
    assert (third.reads, third.is_whole, third.keys) == (1, True, 1)
    task.close()


def test_a_copy_that_was_not_committed_is_never_used(shared_channel: JavaChannel) -> None:
    frames, task = keyed(shared_channel, "at"), JavaBuckets(shared_channel, opening(COUNT), 1)
    first = task.commit(task.run(frames))
    task.run(frames)  # reply lost: the task was killed
    other = JavaBuckets(shared_channel, opening(COUNT), 1)
    other.commit(first)
    again = other.commit(other.run(frames))
    assert again.reads == 1
    assert counted(again)[0][1] == 2
    os.kill(shared_channel.connection().pid, signal.SIGKILL)
    after = other.run(frames)
    assert counted(first)[0][2] < counted(again)[0][2] < counted(after)[0][2]
    assert counted(after)[0][2] - counted(again)[0][2] < 1000, "state continues from the output"
    task.close()
    other.close()


def test_a_worker_cuts_bytes(shared_channel: JavaChannel) -> None:
    connection = shared_channel.connection()
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
