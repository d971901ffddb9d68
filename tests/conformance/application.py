"""What the driver knows of the conformance application: its topology, ports and stages."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from wallaroo.worker._proto import worker_pb2 as pb

HERE = Path(__file__).resolve().parent
TOPOLOGY: dict[str, Any] = json.loads((HERE / "topology.json").read_text(encoding="utf-8"))
ARGS = ["--in", "127.0.0.1:7010,127.0.0.1:7011,127.0.0.1:7012", "--out", "127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004"]
STREAMS_ARGS = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"]
VECTORS = HERE.parents[1] / "topology-schema" / "vectors"
FLUSH_MS = 5000  # of every count window that a program declares


def scaled(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case whose count windows are flushed after the time that programs have; all its times grow with it."""
    window = case["window"]
    if window["kind"] != "count" or window["flush_ms"] == FLUSH_MS:
        return case
    factor, rest = divmod(FLUSH_MS, window["flush_ms"])
    assert not rest

    def later(each: dict[str, Any]) -> dict[str, Any]:
        return each | {name: each[name] * factor for name in ("time", "tick") if name in each}

    timed = {name: list(map(later, case[name])) for name in ("events", "outputs", "dead_letters")}
    return case | {"window": window | {"flush_ms": FLUSH_MS}} | timed


WINDOW_CASES: list[dict[str, Any]] = [
    scaled(case) for case in json.loads((VECTORS / "windows.json").read_text(encoding="utf-8"))["cases"]
]
VECTOR_WINDOWS = [json.loads(text) for text in dict.fromkeys(json.dumps(case["window"]) for case in WINDOW_CASES)]
NAME = "Conformance"
BUCKETS = 8
FRAME_BYTES = 1 << 20
DEAD_LETTERS = 65535

WORDS, NUMBERS, LINES, COUNT, SPREAD, TALLY, WORDS_OUT, NUMBERS_OUT, LINES_OUT = range(9)
PORTS = {
    "0/sources/0": WORDS, "1/sources/0": NUMBERS, "2/sources/0": LINES, "0/steps/2": COUNT, "1/steps/0": SPREAD,
    "1/steps/2": TALLY, "0/sinks/0": WORDS_OUT, "1/sinks/0": NUMBERS_OUT, "2/sinks/0": LINES_OUT,
}  # fmt: skip
STATE_PORTS = {"totals": COUNT, "numbers": SPREAD, "tallies": TALLY}


def node(path: str, kind: str, *inputs: str, state: str = "") -> pb.Node:
    """Return a node of a stage; its ports follow from its path and state."""
    made = pb.Node(
        path=path, kind=pb.NodeKind.Value(f"NODE_KIND_{kind}"), inputs=inputs, port=PORTS.get(path, 0), state=state
    )
    if kind.startswith("STATE"):
        made.state_port = STATE_PORTS[state]
    return made


def part(path: str, kind: str, *inputs: str, **more: Any) -> pb.Node:
    """Return a node whose ports and state are given."""
    return pb.Node(path=path, kind=pb.NodeKind.Value(f"NODE_KIND_{kind}"), inputs=inputs, **more)


def stage(identity: str, *nodes: pb.Node) -> pb.Stage:
    """Return a stage of the application."""
    return pb.Stage(id=identity, nodes=nodes, bucket_count=BUCKETS, frame_bytes=FRAME_BYTES)


FIRST = stage(
    "s0",
    node("0/sources/0", "SOURCE"),
    node("1/sources/0", "SOURCE"),
    node("2/sources/0", "SOURCE"),
    node("0/steps/0", "COMPUTATION", "0/sources/0"),
    node("0/steps/1", "COMPUTATION_MULTI", "0/steps/0"),
    node("0/steps/2", "KEY", "0/steps/1", state="totals"),
    node("1/steps/0", "KEY", "1/sources/0", state="numbers"),
    node("2/sinks/0", "SINK", "2/sources/0"),
)
SECOND = stage(
    "s1",
    node("0/steps/2", "STATE_COMPUTATION", state="totals"),
    node("1/steps/0", "STATE_COMPUTATION_MULTI", state="numbers"),
    node("1/steps/1", "COMPUTATION", "1/steps/0"),
    node("1/steps/2", "KEY", "1/steps/1", state="tallies"),
    node("0/sinks/0", "SINK", "0/steps/2"),
)
THIRD = stage("s2", node("1/steps/2", "STATE_COMPUTATION", state="tallies"), node("1/sinks/0", "SINK", "1/steps/2"))


def without_address(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part without host and port."""
    return {name: value for name, value in part.items() if name not in ("host", "port")}


def interface_hash() -> str:
    """Compute the hash as the specification says, without the project's code."""
    pipelines = [
        {"name": pipeline["name"]}
        | {kind: [without_address(part) for part in pipeline[kind]] for kind in ("sources", "steps", "sinks")}
        for pipeline in TOPOLOGY["pipelines"]
    ]
    rest = {"topology_version": 1, "name": NAME, "pipelines": pipelines}
    text = json.dumps(rest, ensure_ascii=False, indent=2) + "\n"
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def bucket_of(key: bytes) -> int:
    """Return the bucket of a key."""
    return (zlib.crc32(key) * 0x9E3779B1 % (1 << 32)) * BUCKETS >> 32
