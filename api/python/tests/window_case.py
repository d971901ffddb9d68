"""A window step alone in its stage: what the tests of windows share."""

from pathlib import Path
from typing import Any

from call_case import closed_call

import wallaroo
from wallaroo.component.application import Application, State, Step
from wallaroo.diagnostic.location import Location
from wallaroo.message.frame import FRAMED, TICK_PORT, FrameHeader, encode_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import ValueCodec

VECTORS = Path(__file__).resolve().parents[3] / "topology-schema" / "vectors"
PORT, SINK = 1, 2
TUMBLING = {"kind": "range", "range_ms": 10, "slide_ms": 10, "delay_ms": 0, "late": "drop", "time": "ingest"}
Event = dict[str, Any]


class Values:
    """The vectors' aggregation."""

    def initial_accumulator(self) -> list[int]:
        return []

    def update(self, data: int, accumulator: list[int]) -> None:
        accumulator.append(data)
        if data == -1:
            msg = "minus one"
            raise ValueError(msg)

    def combine(self, left: list[int], right: list[int]) -> list[int]:
        return left + right

    def output(self, key: Any, accumulator: list[int]) -> Any:
        if -2 in accumulator:
            msg = "minus two"
            raise ValueError(msg)
        return f"{key!r} {accumulator}"


@wallaroo.encoder
def plain(data: str) -> str:
    return data


@wallaroo.computation("pass")
def passed(data: Any) -> Any:
    return data


def application(kit: Any, window: dict[str, Any], aggregation: Any = None) -> Application:
    app: Application = kit.build(lambda builder: builder.to(passed), encoder=plain)
    (old,) = app.pipelines[0].steps
    values = aggregation or Values()
    app.pipelines[0].steps = [
        Step(
            old.path, "values", "window", old.inputs, passed.compute, Location("", 0),
            State("w", Values, values.initial_accumulator, None), window=window, aggregation=values,
        )
    ]  # fmt: skip
    return app


def make(
    kit: Any, window: dict[str, Any], aggregation: Any = None, app: Application | None = None, **more: Any
) -> Stage:
    stage = pb.Stage(id="s", bucket_count=4, frame_bytes=1 << 20)
    stage.nodes.append(
        pb.Node(path="0/steps/0", kind=pb.NODE_KIND_WINDOW, port=PORT, state="w", state_port=PORT, **more)
    )
    stage.nodes.append(pb.Node(path="0/sinks/0", kind=pb.NODE_KIND_SINK, port=SINK, inputs=["0/steps/0"]))
    return Stage(app or application(kit, window, aggregation), stage)


def tick(sequence: int, time: int) -> bytes:
    return write_frame(FrameHeader(TICK_PORT, 0, sequence, 0, FRAMED, time), [])


def message(codec: ValueCodec, event: Event) -> bytes:
    encoding, lengths, data = codec.encode([codec.freeze(event["value"])])
    assert sum(lengths) == len(data)
    key = event["key"] if isinstance(event["key"], bytes) else event["key"].encode()
    return encode_frame(
        [data], port=PORT, sequence=event["sequence"], encoding=encoding, timestamp_ms=event["time"], keys=[key],
        key_indexes=[0],
    )  # fmt: skip


def frames(stage: Stage, events: list[Event]) -> list[bytes]:
    return [
        tick(event["sequence"], event["tick"]) if "tick" in event else message(stage.codec, event) for event in events
    ]


def run(stage: Stage, events: list[Event], log: list[bytes], **wishes: Any) -> BucketResult:
    """Do what the service does, the state read from its log."""
    call, committed = pb.Bucket(index=0, bucket=0, **wishes), lambda: read(stage, log)
    return closed_call(stage, call, frames(stage, events), committed(), committed)[0]


def read(stage: Stage, log: list[bytes]) -> BucketState:
    state = BucketState(stage.codec)
    state.read(log)
    return state


def entries(result: BucketResult) -> list[bytes]:
    return [entry for change in result.changes for entry in change.entries]


def keys(stage: Stage, log: list[bytes]) -> list[str]:
    return sorted(key.decode() for key in read(stage, log).calendar(PORT))


def letters(kit: Any, result: BucketResult) -> list[tuple[int, str, str, int]]:
    return [(each.sequence, each.key.decode(), each.code, each.timestamp_ms) for each in kit.letters(result.outputs)]


def dropped(result: BucketResult) -> int:
    return sum(each.more["dropped_late"] for each in result.done.counts)


def sums(*values: int, key: Any = "a", start: int = 0) -> list[Event]:
    return [{"sequence": start + at, "key": key, "time": start + at, "value": each} for at, each in enumerate(values)]
