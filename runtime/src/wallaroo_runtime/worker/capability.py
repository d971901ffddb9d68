"""Checks that a worker has the capabilities (optional parts of the protocol) that a stage needs."""

from collections.abc import Iterable

from wallaroo.message.handshake import (
    CHECK_PERSIST,
    CROSSING,
    OUTPUTS,
    PROTOBUF,
    SESSIONS,
    TIMERS,
    VISITS,
    WATERMARKS,
    WINDOWS,
)
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.spec import WorkerSpec

_BORDERS = (pb.NODE_KIND_SEND, pb.NODE_KIND_RECEIVE)


def needed(stage: pb.Stage) -> set[str]:
    """Return the capabilities that a stage needs."""
    return {
        name
        for node in stage.nodes
        for name, is_needed in (
            (WINDOWS, node.kind == pb.NODE_KIND_WINDOW),
            (SESSIONS, node.sessions),
            (WATERMARKS, node.watermarks),
            (OUTPUTS, node.kind == pb.NODE_KIND_OUTPUT),
            (VISITS, node.visits),
            (TIMERS, node.ttl_ms or node.timers),
            (CROSSING, node.kind in _BORDERS or node.codec),
            (PROTOBUF, node.codec.startswith("protobuf:")),
        )
        if is_needed
    }


def lacking(names: str, what: str) -> str:
    """Return the text for W416, with the capabilities that a worker lacks and the part that needs them."""
    return f"lacks the capability {names}, which {what} needs"


def check_capabilities(spec: WorkerSpec, stage: pb.Stage, offered: Iterable[str]) -> None:
    """Check that a worker has the capabilities that a stage needs.

    Raises:
        RunError: W416 if the worker lacks a capability.
    """
    missing = sorted(needed(stage) - set(offered))
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise RunError.of("W416", WORKER, worker=spec.name, lack=lacking(names, f'stage "{stage.id}"'))
    if spec.check_persist and CHECK_PERSIST not in offered:
        raise RunError.of("W416", WORKER, worker=spec.name, lack=lacking(f'"{CHECK_PERSIST}"', "--debug"))
