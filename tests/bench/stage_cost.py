"""Prints what a word costs in the word count's two stages, without gRPC: `python stage_cost.py [MESSAGES]`."""

import random
import struct
import sys
import time
from itertools import groupby
from pathlib import Path

from wallaroo.emit.program import load
from wallaroo.message.frame import FRAMED, FrameHeader, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.call_run import CallRun
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import ValueCodec

APP = Path(__file__).resolve().parents[1] / "cases/word_count/app.py"
BUCKETS = 8
WORDS = 8
FRAME_MESSAGES = 20_000
FRAME_BYTES = 1 << 20


def stages() -> tuple[pb.Stage, pb.Stage]:
    """Return the two stages that the plan of the word count has."""
    split = pb.Stage(
        id="s0",
        bucket_count=BUCKETS,
        frame_bytes=FRAME_BYTES,
        nodes=[
            pb.Node(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0),
            pb.Node(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION_MULTI, inputs=["0/sources/0"]),
            pb.Node(path="0/steps/1", kind=pb.NODE_KIND_KEY, inputs=["0/steps/0"], port=1),
        ],
    )
    count = pb.Stage(
        id="s1",
        bucket_count=BUCKETS,
        frame_bytes=FRAME_BYTES,
        nodes=[
            pb.Node(path="0/steps/1", kind=pb.NODE_KIND_STATE_COMPUTATION, port=1, state="word totals", state_port=1),
            pb.Node(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=["0/steps/1"], port=2),
        ],
    )
    return split, count


def journal(messages: int) -> list[bytes]:
    """Return frames of eight-word messages over a vocabulary like that of a text."""
    draw = random.Random(7)
    words = ["".join(draw.choices("etaoinshrdlucmfwyp", k=draw.randint(2, 9))) for _ in range(5000)]
    weights = [1 / rank for rank in range(1, 5001)]
    frames = []
    for start in range(0, messages, FRAME_MESSAGES):
        count = min(FRAME_MESSAGES, messages - start)
        lines = [" ".join(draw.choices(words, weights, k=WORDS)).encode() for _ in range(count)]
        body = b"".join(struct.pack(">I", len(line)) + line for line in lines)
        frames.append(write_frame(FrameHeader(0, len(lines), start, 0, FRAMED, 1), [body]))
    return frames


def main(messages: int) -> None:
    """Measure and print."""
    program = load(str(APP), ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"])
    first, second = (Stage(program.application, stage) for stage in stages())
    frames = journal(messages)
    words = messages * WORDS
    first.run(0, frames[0])

    begin = time.process_time()
    outputs = [output for index, frame in enumerate(frames) for output in first.run(index, frame)]
    split_time = time.process_time() - begin

    codec = ValueCodec(program.application.serializer)
    outputs.sort(key=lambda output: output.bucket)
    grouped = {bucket: [item.frame for item in group] for bucket, group in groupby(outputs, lambda item: item.bucket)}
    begin = time.process_time()
    seen = 0
    for bucket, parts in grouped.items():
        state = BucketState(codec)
        call = pb.Bucket(index=0, bucket=bucket)
        result = CallRun(second, call, state).part(call, parts)
        assert isinstance(result, BucketResult)
        seen += result.done.counts[-1].messages_out
    count_time = time.process_time() - begin
    assert seen == words, (seen, words)

    application = program.application.pipelines[0]
    split, count = application.steps
    begin = time.process_time()
    user_words = [word for frame in frames for word in _user_split(frame, application.sources[0].decode, split.run)]
    keys = [count.state.partition(word) for word in user_words]
    states = {key: count.state.build() for key in set(keys)}
    for word, key in zip(user_words, keys, strict=True):
        application.sinks[0].encode(count.run(word, states[key])[0])
    user_time = time.process_time() - begin

    print(f"{words} words")
    print(f"split, partition, serialize   {split_time / words * 1e6:6.2f} us per word")
    print(f"deserialize, count, encode    {count_time / words * 1e6:6.2f} us per word")
    print(f"together                      {(split_time + count_time) / words * 1e6:6.2f} us per word")
    print(f"user code alone               {user_time / words * 1e6:6.2f} us per word")


def _user_split(frame, decode, split):
    at = 40
    while at < len(frame):
        (length,) = struct.unpack_from(">I", frame, at)
        yield from split(decode(frame[at + 4 : at + 4 + length]))
        at += 4 + length


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
