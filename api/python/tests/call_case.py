"""A bucket call, as the service runs it, and its tries."""

from collections.abc import Callable, Sequence

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.call_run import CallRun
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage

Outcome = tuple[BucketResult, BucketState]  # the result of a call, and the state that it left


def attempt(
    stage: Stage, call: pb.Bucket, frames: Sequence[bytes], state: BucketState, *, checks_persist: bool = False
) -> BucketResult | None:
    """Return the result of the first try of a call with one part; None if user code failed at full speed."""
    return _only(CallRun(stage, call, state, checks_persist=checks_persist), call, frames)


def second_try(stage: Stage, call: pb.Bucket, frames: Sequence[bytes], state: BucketState) -> BucketResult:
    """Return the result of the second try of a call with one part."""
    result = _only(CallRun(stage, call, state, before=CallRun(stage, call, state)), call, frames)
    assert result is not None
    return result


def closed_call(
    stage: Stage, call: pb.Bucket, frames: Sequence[bytes], state: BucketState, committed: Callable[[], BucketState]
) -> Outcome:
    """Run a call with one part: a second time, with the committed state, if user code fails."""
    result = attempt(stage, call, frames, state)
    if result is None:
        state = committed()
        result = second_try(stage, call, frames, state)
    return result, state


def open_call(
    stage: Stage,
    call: pb.Bucket,
    state: BucketState,
    committed: Callable[[], BucketState],
    parts: Sequence[Sequence[bytes]],
) -> Outcome:
    """Run a call whose parts are all released but the last one."""
    run = CallRun(stage, call, state)
    outputs: list[pb.Output] = []
    for at, frames in enumerate(parts):
        last = pb.Bucket(more=at < len(parts) - 1, wants_snapshot=call.wants_snapshot)
        given = run.part(last, frames)
        if given is None:
            state = committed()
            run = CallRun(stage, call, state, before=run)
            given = run.part(last, frames)
        if isinstance(given, BucketResult):
            return BucketResult(outputs + given.outputs, given.changes, given.done), state
        assert given is not None
        outputs += given
    raise AssertionError


def _only(run: CallRun, call: pb.Bucket, frames: Sequence[bytes]) -> BucketResult | None:
    result = run.part(pb.Bucket(wants_snapshot=call.wants_snapshot), frames)
    assert not isinstance(result, list)
    return result
