"""Applications and stages for the tests of the front-end and the worker."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import wallaroo
from support.signals import usual_signals
from wallaroo.component.application import Application, Sink, Source
from wallaroo.message.frame import FRAMED, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.stage import STEP_KINDS

usual_signals()


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs: bytes) -> Any:
    """Give text; `bad` raises, `drop` is dropped."""
    if bs == b"drop":
        return None
    return bs.decode()


@wallaroo.encoder
def encode(data: Any) -> Any:
    """Give the repr, or what the message stands for."""
    return {"none": None, "bytes": b"\xff", "number": 7}.get(data, f"<{data}>") if isinstance(data, str) else repr(data)


def build(
    *steps: Callable[[wallaroo.ApplicationBuilder], Any], encoder: Any = encode, decoder: Any = decode
) -> Application:
    """Build an application of one pipeline."""
    builder = wallaroo.ApplicationBuilder("test")
    builder.new_pipeline("line", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decoder))
    for step in steps:
        step(builder)
    return builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encoder)).build()


def stage_of(
    application: Application, first: str, *, buckets: int = 4, frame_bytes: int = 1 << 20, timestamps: bool = False
) -> pb.Stage:
    """Return the stage that begins at a source or state step and goes on to the next state step or the sinks."""
    nodes = list(application.nodes())
    ports = {node.path: at for at, node in enumerate(sorted(nodes, key=_port_order)) if _has_port(node)}
    stage = pb.Stage(id="s", bucket_count=buckets, frame_bytes=frame_bytes)
    inside: set[str] = set()
    for node in nodes:
        if node.path == first:
            kind = pb.NODE_KIND_SOURCE if isinstance(node, Source) else STEP_KINDS[node.kind]
            stage.nodes.append(pb.Node(path=first, kind=kind, port=ports[first], state="s", state_port=ports[first]))
            inside.add(first)
            continue
        if isinstance(node, Source) or not inside & set(node.inputs):
            continue
        if isinstance(node, Sink):
            stage.nodes.append(
                pb.Node(path=node.path, kind=pb.NODE_KIND_SINK, inputs=node.inputs, port=ports[node.path])
            )
        elif node.state is not None:
            key = pb.Node(path=node.path, kind=pb.NODE_KIND_KEY, inputs=node.inputs, port=ports[node.path])
            key.keys, key.timestamps = node.state.is_by_message, timestamps
            stage.nodes.append(key)
        else:
            output = node.name if node.kind == "output" else ""
            stage.nodes.append(pb.Node(path=node.path, kind=STEP_KINDS[node.kind], inputs=node.inputs, output=output))
            inside.add(node.path)
    return stage


def wire(payloads: Sequence[bytes], *, port: int = 0, sequence: int = 0) -> bytes:
    """Return a journal frame."""
    body = b"".join(struct.pack(">I", len(payload)) + payload for payload in payloads)
    return write_frame(FrameHeader(port, len(payloads), sequence, 0, FRAMED, 5), [body])


def letters(outputs: Sequence[pb.Output]) -> list[pb.DeadLetter]:
    """Return the dead letters among outputs."""
    return [
        pb.DeadLetter.FromString(value)
        for output in outputs
        if output.port == 65535
        for value in read_frame(output.frame).values()
    ]


def sunk(outputs: Sequence[pb.Output]) -> list[tuple[int, bytes]]:
    """Return sequence and bytes of what goes to sinks."""
    found = []
    for output in outputs:
        if output.port != 65535 and output.bucket == -1:
            frame = read_frame(output.frame)
            found += [(frame.sequence_of(at), value) for at, value in enumerate(frame.values())]
    return found


class Kit:
    """What tests use."""

    build, stage_of, wire, letters, sunk = (staticmethod(each) for each in (build, stage_of, wire, letters, sunk))
    decode, encode = decode, encode


@pytest.fixture(scope="session")
def kit() -> type[Kit]:
    """Return the functions above."""
    return Kit


def _has_port(node: Any) -> bool:
    return isinstance(node, (Source, Sink)) or node.state is not None


def _port_order(node: Any) -> tuple[int, str]:
    return (0 if isinstance(node, Source) else 3 if isinstance(node, Sink) else 1 if node.state else 9, node.path)
