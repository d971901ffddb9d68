"""A bucket call that stays open, as the service runs it."""

from collections.abc import Callable, Sequence

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.open_run import OpenRun
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage


def open_call(
    stage: Stage,
    call: pb.Bucket,
    state: BucketState,
    committed: Callable[[], BucketState],
    parts: Sequence[Sequence[bytes]],
) -> tuple[BucketResult, BucketState]:
    """Return what a call gave, whose parts are all released but the last one, and the state that it left."""
    run = OpenRun(stage, call, state)
    outputs: list[pb.Output] = []
    for at, frames in enumerate(parts):
        last = pb.Bucket(more=at < len(parts) - 1, wants_snapshot=call.wants_snapshot)
        given = run.part(last, frames)
        if given is None:
            state = committed()
            run = OpenRun(stage, call, state, before=run)
            given = run.part(last, frames)
        if isinstance(given, BucketResult):
            return BucketResult(outputs + given.outputs, given.changes, given.done), state
        assert given is not None
        outputs += given
    raise AssertionError
