"""What a worker sends is checked where it is taken: each broken rule names worker, stage, field and value."""

from collections import Counter
from dataclasses import replace

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as some

from wallaroo.message.frame import DEAD_LETTER_PORT, FRAMED, FrameHeader, encode_frame, write_frame
from wallaroo.message.key import bucket_of
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.worker.audit import MOST_KEYS, Audit, RuleError, messages_by_port
from wallaroo_runtime.worker.channel import WorkerChannel
from wallaroo_runtime.worker.owner_process import Owner
from wallaroo_runtime.worker.process import ProcessCall
from wallaroo_runtime.worker.session import StateSession, Version
from wallaroo_runtime.worker.spec import WorkerSpec

SPLIT = pb.Stage(id="s0", bucket_count=4, frame_bytes=1 << 20)
SPLIT.nodes.add(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0)
SPLIT.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION_MULTI, inputs=["0/sources/0"])
SPLIT.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_KEY, inputs=["0/steps/0"], port=1)
COUNT = pb.Stage(id="s1", bucket_count=4, frame_bytes=1 << 20)
COUNT.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_STATE_COMPUTATION, port=1, state="counts", state_port=1)
COUNT.nodes.add(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=["0/steps/1"], port=2)
BROKE = 'W410 worker "main": the protocol is broken; '
KEYED = [
    ("bucket -1", BROKE + 'stage "s0", field bucket: -1; port 1 has 0 to 3'),
    ("bucket 99", BROKE + 'stage "s0", field bucket: 99; port 1 has 0 to 3'),
    ("bucket 2", BROKE + "stage \"s0\", field bucket: 2; the key b'a' belongs to 3"),
    ("port", BROKE + 'stage "s0", field port: 55; expected one of [1, 65535]'),
    ("index", BROKE + "output came out of turn; call 0 is not done"),
    ("damage", BROKE + 'a frame is damaged; stage "s0", port 1: checksum is'),
    ("cut", BROKE + 'a frame is damaged; stage "s0", port 1: the frame has'),
    ("two frames", BROKE + 'stage "s0", field frame: '),
    ("frame port", BROKE + 'stage "s0", field frame: port 77; the output has 1'),
    ("no keys", BROKE + 'stage "s0", field frame: flags 0; port 1 has keys'),
    ("no counts", BROKE + 'stage "s0", field messages_in: 0; 0/sources/0 was sent 2'),
    ("in", BROKE + 'stage "s0", field messages_in: 3; 0/sources/0 was sent 2'),
    ("out", BROKE + 'stage "s0", field messages_out: 3; 2 came to 0/sources/0'),
    ("dead", BROKE + 'stage "s0", field dead_letters: 1; frames hold 0'),
]
STATE = [
    ("bucket 0", BROKE + 'stage "s1", field bucket: 0; port 2 has -1'),
    ("port", BROKE + 'stage "s1", field port: 55; expected one of [2, 65535]'),
    ("index", BROKE + "output came out of turn; call 0 is not done"),
    ("damage", BROKE + 'a frame is damaged; stage "s1", port 2: checksum is'),
    ("no counts", BROKE + 'stage "s1", field messages_in: 0; 0/steps/1 was sent 2'),
    ("in", BROKE + 'stage "s1", field messages_in: 3; 0/steps/1 was sent 2'),
    ("out", BROKE + 'stage "s1", field messages_out: 3; 2 came to 0/steps/1'),
    ("sink", BROKE + 'stage "s1", field messages_out: 3; the frames of 0/sinks/0 hold 2'),
    ("dead", BROKE + 'stage "s1", field dead_letters: 1; frames hold 0'),
]


def process(channel: WorkerChannel) -> None:
    frame = write_frame(FrameHeader(0, 2, 0, encoding=FRAMED), [b"\0\0\0\2at\0\0\0\2an"])
    list(ProcessCall(channel, pb.Opening(application="counts", query="q", stage=SPLIT)).run([frame]))


def process_state(channel: WorkerChannel) -> None:
    frame = encode_frame([b"at", b"an"], port=1, encoding=16, keys=[b"a"], key_indexes=[0, 0])
    opening = pb.Opening(application="counts", query="q", stage=COUNT)
    StateSession(channel, opening).run_bucket(1, Version(), [frame], list, wants_snapshot=False)


@given(some.binary(max_size=12))
def test_a_dead_letter_that_is_none_is_refused(value: bytes) -> None:
    output = pb.Output(port=DEAD_LETTER_PORT, bucket=-1, frame=encode_frame([value], port=DEAD_LETTER_PORT))
    try:
        pb.DeadLetter.FromString(value)
    except DecodeError:
        with pytest.raises(RuleError, match='stage "s0", field frame: port 65535; each value is a DeadLetter'):
            Audit(SPLIT).output(output)
    else:
        assert Audit(SPLIT).output(output).count == 1


def test_counts_of_no_node_are_refused() -> None:
    with pytest.raises(RuleError, match="field counts: evil; expected one of"):
        Audit(SPLIT).call({0: 1}, {}, [pb.StepCount(path="evil", messages_in=9, messages_out=9)])


@given(some.sampled_from((pb.NODE_KIND_WINDOW, pb.NODE_KIND_STATE_COMPUTATION_MULTI)), some.integers(0, 5), some.data())
def test_a_step_counts_what_it_has_a_counter_for_and_no_more_than_came(
    kind: int, came: int, data: some.DataObject
) -> None:
    late = data.draw(some.integers(0, 6))
    has_counter = kind == pb.NODE_KIND_WINDOW
    node = pb.Node(
        path="0/steps/0", kind=kind, port=1, state="w", state_port=1, counters=["dropped_late"][:has_counter]
    )
    stage = pb.Stage(id="s", nodes=[node])
    counts = [pb.StepCount(path="0/steps/0", messages_in=came, more={"dropped_late": late})]
    if late <= has_counter * came:
        Audit(stage).call({1: came}, {}, counts)
        return
    with pytest.raises(RuleError, match=f"field dropped_late: {late}; 0/steps/0 had {came} messages"):
        Audit(stage).call({1: came}, {}, counts)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "text"), KEYED)
def test_a_stage_that_breaks_a_rule(plain_spec: WorkerSpec, executor: Owner, fault: str, text: str) -> None:
    with pytest.raises(RunError) as caught:
        process(WorkerChannel(replace(plain_spec, args=("wrong", fault)), executor))
    assert str(caught.value).startswith(text)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "text"), STATE)
def test_a_bucket_call_that_breaks_a_rule(plain_spec: WorkerSpec, executor: Owner, fault: str, text: str) -> None:
    with pytest.raises(RunError) as caught:
        process_state(WorkerChannel(replace(plain_spec, args=("wrong", fault)), executor))
    assert str(caught.value).startswith(text)


@pytest.mark.slow
@pytest.mark.parametrize(("call", "stage"), [(process, "s0"), (process_state, "s1")])
def test_a_call_without_its_end_is_told_at_its_deadline(
    plain_spec: WorkerSpec, executor: Owner, call: object, stage: str
) -> None:
    channel = WorkerChannel(replace(plain_spec, args=("wrong", "no done"), deadline_ms=1000), executor)
    assert callable(call)
    with pytest.raises(RunError) as caught:
        call(channel)
    assert str(caught.value).startswith(f'{BROKE}stage "{stage}", field done: missing for 1 s after 1 outputs')
    assert channel.endpoints().connection.generation == 1, "it was not tried again"


@given(some.lists(some.binary(max_size=8), min_size=1, max_size=3 * MOST_KEYS, unique=True), some.data())
def test_a_key_in_the_bucket_of_another_one_is_found(keys: list[bytes], data: some.DataObject) -> None:
    audit, right = Audit(SPLIT), bucket_of(keys[0], SPLIT.bucket_count)
    mine = [key for key in keys if bucket_of(key, SPLIT.bucket_count) == right]
    sequence = data.draw(some.integers(0, 1 << 40))

    def check(keys: list[bytes]) -> None:
        indexes = list(range(len(keys)))
        frame = encode_frame([b""] * len(keys), port=1, sequence=sequence, keys=keys, key_indexes=indexes)
        audit.output(pb.Output(port=1, bucket=right, frame=frame))

    check(mine)
    others = [key for key in keys if key not in mine][: MOST_KEYS - len(mine)]
    if others:
        with pytest.raises(RuleError) as caught:
            check([*mine, *others])
        told = bucket_of(others[0], SPLIT.bucket_count)
        assert str(caught.value) == (f'stage "s0", field bucket: {right}; the key {others[0]!r} belongs to {told}')


def test_of_many_keys_each_is_checked_in_some_frame() -> None:
    keys = [b"%d" % number for number in range(4000) if bucket_of(b"%d" % number, SPLIT.bucket_count) == 2]
    wrong = next(number for number in range(5000, 6000) if bucket_of(b"%d" % number, SPLIT.bucket_count) == 1)
    keys[700], found = b"%d" % wrong, 0
    for sequence in range(len(keys)):
        values, indexes = [b""] * len(keys), list(range(len(keys)))
        frame = encode_frame(values, port=1, sequence=sequence, keys=keys, key_indexes=indexes)
        try:
            Audit(SPLIT).output(pb.Output(port=1, bucket=2, frame=frame))
        except RuleError:
            found += 1
    assert found == MOST_KEYS


CHAIN = pb.Stage(id="s0", bucket_count=4)
CHAIN.nodes.add(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0)
CHAIN.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION_MULTI, inputs=["0/sources/0"])
CHAIN.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_COMPUTATION, inputs=["0/steps/0"])
CHAIN.nodes.add(path="0/steps/2", kind=pb.NODE_KIND_KEY, inputs=["0/steps/0", "0/steps/1"], port=1)
CHAIN.nodes.add(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=["0/steps/1"], port=2)
FATES = some.lists(some.sampled_from(["dead", "none", "goes"]), min_size=5, max_size=5)


def run_chain(messages: list[tuple[list[str], int]]) -> tuple[Counter[int], dict[str, list[int]]]:
    """Run messages through the chain as their fates say; returns what left by port, and the counts by path."""
    left: Counter[int] = Counter()
    counts: dict[str, list[int]] = {node.path: [0, 0, 0] for node in CHAIN.nodes}

    def step(at: int, fate: str) -> bool:
        row = counts[CHAIN.nodes[at].path]
        row[0] += 1
        left[DEAD_LETTER_PORT] += fate == "dead"
        row[2] += fate == "dead"
        row[1] += fate == "goes"
        return fate == "goes"

    for fates, copies in messages:
        if not step(0, fates[0]) or not step(1, fates[1]):
            continue
        counts["0/steps/0"][1] += copies - 1
        for _ in range(copies):
            left[1] += step(3, "dead" if fates[3] == "dead" else "goes")
            if step(2, fates[2]):
                left[1] += step(3, "dead" if fates[3] == "dead" else "goes")
                left[2] += step(4, fates[4])
    counts["0/steps/2"][:2] = [0, 0]  # what goes to a shuffle is counted where it arrives
    return left, counts


def step_counts(counts: dict[str, list[int]]) -> list[pb.StepCount]:
    return [
        pb.StepCount(path=path, messages_in=row[0], messages_out=row[1], dead_letters=row[2])
        for path, row in counts.items()
    ]


@given(some.lists(some.tuples(FATES, some.integers(0, 3)), max_size=8), some.data())
def test_a_right_account_passes_and_a_lost_message_does_not(
    messages: list[tuple[list[str], int]], data: some.DataObject
) -> None:
    left, counts = run_chain(messages)
    audit, came = Audit(CHAIN), Counter({0: len(messages)})
    audit.call(came, left, step_counts(counts))
    lost = [port for port, number in left.items() if number]
    if lost:
        wrong = left - Counter({data.draw(some.sampled_from(lost)): 1})
        with pytest.raises(RuleError):
            audit.call(came, wrong, step_counts(counts))
    with pytest.raises(RuleError):
        audit.call(came + Counter({0: 1}), left, step_counts(counts))
    twice = [path for path in ("0/sources/0", "0/steps/1", "0/sinks/0") if 0 < counts[path][0] == sum(counts[path][1:])]
    if twice:
        counts[data.draw(some.sampled_from(twice))][2] += 1
        with pytest.raises(RuleError, match="messages_out"):
            audit.call(came, left + Counter({DEAD_LETTER_PORT: 1}), step_counts(counts))


def test_messages_are_counted_by_port_and_ticks_are_none() -> None:
    frames = encode_frame([b"a", b"b"], port=3) + encode_frame([], port=65534) + encode_frame([b"c"], port=3)
    assert messages_by_port(frames) == Counter({3: 3})


OUTPUT = pb.Stage(id="s0", bucket_count=4, frame_bytes=1 << 20)
OUTPUT.nodes.add(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0)
OUTPUT.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION, inputs=["0/sources/0"])
OUTPUT.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_OUTPUT, inputs=["0/steps/0"], output="alerts")
OUTPUT.nodes.add(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=["0/steps/1"], port=1)


def output_counts(came: int, went: int) -> list[pb.StepCount]:
    numbers = {"0/sources/0": (3, 3), "0/steps/0": (3, 1), "0/steps/1": (came, went), "0/sinks/0": (2, 2)}
    return [pb.StepCount(path=path, messages_in=each[0], messages_out=each[1]) for path, each in numbers.items()]


def test_what_is_emitted_to_an_output_goes_on_from_it() -> None:
    Audit(OUTPUT).call({0: 3}, {1: 2}, output_counts(2, 2))
    with pytest.raises(RuleError, match="field messages_out: 2; 3 came to the output 0/steps/1"):
        Audit(OUTPUT).call({0: 3}, {1: 2}, output_counts(3, 2))
    with pytest.raises(RuleError, match="field messages_in: 2; its inputs gave 1 to 0/sinks/0"):
        Audit(OUTPUT).call({0: 3}, {1: 2}, output_counts(1, 1))
