"""What a worker sends is checked where it is taken: each broken rule names worker, stage, field and value."""

from dataclasses import replace

import pytest
from java_client import JavaBuckets, JavaChannel, JavaClient

from wallaroo.message.frame import FRAMED, FrameHeader, encode_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.system.process import ProcessId
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
    ("bucket 2", BROKE + 'stage "s0", field bucket: 2; the key "a" belongs to 3'),
    ("port", BROKE + 'stage "s0", field port: 55; expected one of [1, 65535]'),
    ("index", BROKE + "a reply of call 1 came out of turn; call 0 is not done"),
    ("damage", BROKE + 'a frame is damaged; stage "s0", port 1: the checksum of the frame does not fit'),
    ("cut", BROKE + 'a frame is damaged; stage "s0", port 1: the frame is not whole'),
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
    ("index", BROKE + "a reply of call 1 came out of turn; call 0 is not done"),
    ("damage", BROKE + 'a frame is damaged; stage "s1", port 2: the checksum of the frame does not fit'),
    ("no counts", BROKE + 'stage "s1", field messages_in: 0; 0/steps/1 was sent 2'),
    ("in", BROKE + 'stage "s1", field messages_in: 3; 0/steps/1 was sent 2'),
    ("out", BROKE + 'stage "s1", field messages_out: 3; 2 came to 0/steps/1'),
    ("sink", BROKE + 'stage "s1", field messages_out: 3; the frames of 0/sinks/0 hold 2'),
    ("dead", BROKE + 'stage "s1", field dead_letters: 1; frames hold 0'),
]


def process(channel: JavaChannel, fault: str) -> None:
    """Call a stage; the worker breaks the rule that the query is named like."""
    frame = write_frame(FrameHeader(0, 2, 0, encoding=FRAMED), [b"\0\0\0\2at\0\0\0\2an"])
    list(channel.data(pb.Opening(application="counts", query=fault, stage=SPLIT), [frame]))


def process_state(channel: JavaChannel, fault: str) -> None:
    frame = encode_frame([b"at", b"an"], port=1, encoding=16, keys=[b"a"], key_indexes=[0, 0])
    opening = pb.Opening(application="counts", query=fault, stage=COUNT)
    task = JavaBuckets(channel, opening, 1)
    try:
        task.run([frame])
    finally:
        task.close()


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "text"), KEYED)
def test_a_stage_that_breaks_a_rule(shared_channel: JavaChannel, fault: str, text: str) -> None:
    with pytest.raises(RunError) as caught:
        process(shared_channel, fault)
    assert str(caught.value).startswith(text)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "text"), STATE)
def test_a_bucket_call_that_breaks_a_rule(shared_channel: JavaChannel, fault: str, text: str) -> None:
    with pytest.raises(RunError) as caught:
        process_state(shared_channel, fault)
    assert str(caught.value).startswith(text)


@pytest.mark.slow
@pytest.mark.parametrize(("call", "stage"), [(process, "s0"), (process_state, "s1")])
def test_a_call_without_its_end_is_told_at_its_deadline(
    java_client: JavaClient, plain_spec: WorkerSpec, executor: ProcessId, call: object, stage: str
) -> None:
    channel = JavaChannel(java_client, replace(plain_spec, deadline_ms=1000), executor)
    assert callable(call)
    with pytest.raises(RunError) as caught:
        call(channel, "no done")
    assert str(caught.value).startswith(f'{BROKE}stage "{stage}", field done: missing for 1 s after 1 outputs')
    assert channel.connection().generation == 1, "it was not tried again"
