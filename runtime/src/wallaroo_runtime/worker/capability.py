"""What a stage needs of a worker that a worker may leave out."""

from collections.abc import Iterable

from wallaroo.handshake import CHECK_PERSIST, CROSSING, OUTPUTS, PROTOBUF, REPLAY, VISITS, WINDOWS
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.spec import WorkerSpec

_BORDERS = (pb.NODE_KIND_SEND, pb.NODE_KIND_RECEIVE)


def needed(stage: pb.Stage) -> set[str]:
    """Return the capabilities that a stage needs."""
    names = set()
    for node in stage.nodes:
        if node.kind == pb.NODE_KIND_WINDOW:
            names.add(WINDOWS)
        if node.kind == pb.NODE_KIND_OUTPUT:
            names.add(OUTPUTS)
        if node.visits:
            names.add(VISITS)
        if node.kind in _BORDERS or node.codec:
            names.add(CROSSING)
        if node.codec.startswith("protobuf:"):
            names.add(PROTOBUF)
    return names


def lacks_for_replay(stage: pb.Stage, offered: Iterable[str]) -> str:
    """Return why a worker cannot run messages of dead letters in a stage; empty: it can.

    Example:
        >>> lacks_for_replay(pb.Stage(), ["replay"]), lacks_for_replay(pb.Stage(), [])
        ('', 'its worker does not have "replay"')
    """
    missing = ", ".join(f'"{name}"' for name in sorted((needed(stage) | {REPLAY}) - set(offered)))
    return f"its worker does not have {missing}" if missing else ""


def check_capabilities(spec: WorkerSpec, stage: pb.Stage, offered: Iterable[str]) -> None:
    """Check that a worker can do what a stage needs.

    Raises:
        RunError: W416, it cannot.
    """
    missing = sorted(needed(stage) - set(offered))
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise RunError.of("W416", WORKER, worker=spec.name, names=names, what=f'stage "{stage.id}"')
    if spec.check_persist and CHECK_PERSIST not in offered:
        raise RunError.of("W416", WORKER, worker=spec.name, names=f'"{CHECK_PERSIST}"', what="--check-persist")
