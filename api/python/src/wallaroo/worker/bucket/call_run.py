"""Runs a bucket call in one or more parts. The outputs of a part are sent at once, changes of states at the end."""

from collections import Counter
from collections.abc import Sequence

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, shown
from wallaroo.message.key import readable
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult, BucketRun
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.flight import MESSAGE
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import NotSerializableError


class CallRun(BucketRun):
    """One try of a bucket call, which comes in one or more parts. Between two parts, other calls may use the stage.

    A try runs at full speed, or message by message if the call is `careful`, or `checks_persist`. After a failure at
    full speed a second try runs the last part message by message, so that the failure concerns one message only.

    Args:
        call: The first request of the call.
        state: The committed state.
        checks_persist: Whether a change of state without `persist` is a failure. The check is slow.
        before: The previous try, which has spoilt its state. The parts that it has released run again, without output.
    """

    def __init__(
        self,
        stage: Stage,
        call: pb.Bucket,
        state: BucketState,
        *,
        checks_persist: bool = False,
        before: "CallRun | None" = None,
    ) -> None:
        super().__init__(stage, call, state, checks_persist=checks_persist)
        self._last_try = before
        self._has_begun = self._wants_snapshot = False
        self._released: list[Sequence[bytes]] = []
        self._ordinal = 0
        self._counts: list[pb.StepCount] = []
        self._visited: list[pb.Visited] = []

    def part(self, last: pb.Bucket, frames: Sequence[bytes]) -> list[pb.Output] | BucketResult | None:
        """Process the frames of a part of the call.

        Returns:
            The outputs of the part, or for the last part the result of the call. None if user code failed, which has
            spoilt the state.

        Raises:
            FrameError: The frames are damaged or do not belong to this stage.
            DiagnosticError: W430 if user code fails on a message of a released part, on which it did not fail before;
                C511 if a state cannot be written, and no message of the last part is the cause.
        """
        self._wants_snapshot = self._wants_snapshot or last.wants_snapshot
        if not self._has_begun:
            self._has_begun = True
            self._begin(is_careful=self._call.careful or self._checks_persist)
            if self._last_try is not None:
                self._repeat(self._last_try)
        self._forget()
        if not self._run_frames(frames):
            return None
        if last.more or self._released:
            self.stage.order()
        result = self._release(frames) if last.more else self._end()
        self.stage.clear()
        return result

    def _release(self, frames: Sequence[bytes]) -> list[pb.Output]:
        self.stage.flight[MESSAGE] = 0
        outputs = list(self.stage.outputs(self._call.index, self._timestamp_ms))
        self._counts = self._counted(self.stage.counts())
        self._visited += self._visits.counts
        self._released.append(frames)
        return outputs

    def _end(self) -> BucketResult | None:
        """Serialize all changes, and return the result; None if a state cannot be written: then the call runs again."""
        try:
            result = self._result(is_whole=self._wants_snapshot)
        except NotSerializableError as err:
            if self._before is None:
                return None
            if step := self._step_of(err.port):
                raise DiagnosticError([err.finding("C511", step, shown(readable(err.key)))]) from err
            raise
        finally:
            self._state.watch = None
        result.done.counts.extend(self._counted(self.stage.counts()))
        result.done.visits.extend([*self._visited, *self._visits.counts])
        return result

    def _run_frames(self, frames: Sequence[bytes]) -> bool:
        is_done = super()._run_frames(frames)
        self._ordinal = self.stage.ordinal
        return is_done

    def _repeat(self, before: "CallRun") -> None:
        """Rebuild the states after a failed try: process the parts again whose outputs were sent, and send nothing."""
        for frames in before._released:
            self._forget()
            if not self._run_frames(frames):
                raise DiagnosticError([Diagnostic.of("W430", step=self._failing)])
        self._released, self._counts, self._visited = before._released, before._counts, before._visited
        self._timed.is_careful, self._before = True, self._written()
        self._last_try = None

    def _forget(self) -> None:
        """Remove from the stage the data of other calls, which may have used it since the previous part."""
        self.stage.clear()
        self.stage.ordinal = self._ordinal
        self._visits.waiting.clear()
        self._visits.counts = []

    def _counted(self, counts: Sequence[pb.StepCount]) -> list[pb.StepCount]:
        """Return the counts of this part, added to those of the call's earlier parts."""
        if not self._counts:
            return list(counts)
        return [
            pb.StepCount(
                path=one.path,
                messages_in=one.messages_in + other.messages_in,
                messages_out=one.messages_out + other.messages_out,
                dead_letters=one.dead_letters + other.dead_letters,
                more=Counter(one.more) + Counter(other.more),
            )
            for one, other in zip(self._counts, counts, strict=True)
        ]
