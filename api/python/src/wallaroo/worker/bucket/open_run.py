"""Runs the parts of a bucket call that stays open: outputs of a part are sent at once, changes of state at the end."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult, BucketRun
from wallaroo.worker.bucket.cell import UNREAD, Cell
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.bucket.window_run import WindowTurn
from wallaroo.worker.stage.flight import MESSAGE
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import NotSerializableError


class OpenRun(BucketRun):
    """One try of a call that stays open. Between the parts of the call, other calls may use the stage.

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
        before: "OpenRun | None" = None,
    ) -> None:
        super().__init__(stage, call, ())
        self.stage, self._state, self._last_try = stage, state, before
        self._checks_persist, self._is_watched = checks_persist, call.careful
        self._is_careful = call.careful or checks_persist
        self._wants_snapshot = False
        self._turn: WindowTurn | None = None
        self._released: list[Sequence[bytes]] = []
        self._ordinal = 0
        self._counts: list[pb.StepCount] = []
        self._visited: list[pb.Visited] = []

    def part(self, last: pb.Bucket, frames: Sequence[bytes]) -> list[pb.Output] | BucketResult | None:
        """Run a part.

        Returns:
            The outputs of the part, or for the last part the result of the call. None if user code failed, which has
            spoilt the state.

        Raises:
            FrameError: The frames are damaged or do not belong to this stage.
            DiagnosticError: W430 if user code fails on a message of a released part, on which it did not fail before;
                C511 if a state cannot be written, and no message of the last part is the cause.
        """
        self._wants_snapshot = self._wants_snapshot or last.wants_snapshot
        turn = self._turn or self._begin_try()
        self._forget()
        if not self._run_frames(frames, turn):
            return None
        self.stage.order()
        result = self._release(frames) if last.more else self._end()
        self.stage.clear()
        return result

    def _begin_try(self) -> WindowTurn:
        self._begin(self._state, is_careful=self._is_careful)
        self._turn = WindowTurn(self.stage, self._state)
        if self._is_watched:
            self._state.watch = self._watch
            self.stage.note("")
        if self._last_try is not None:
            self._repeat(self._last_try, self._turn)
        return self._turn

    def _release(self, frames: Sequence[bytes]) -> list[pb.Output]:
        self.stage.flight[MESSAGE] = 0
        outputs = list(self.stage.outputs(self._call.index, self._timestamp_ms))
        self._counts = self._counted(self.stage.counts())
        self._visited += self._visits.counts
        self._released.append(frames)
        return outputs

    def _end(self) -> BucketResult | None:
        """Write all changes and return the result; None if a state cannot be written, so that the try is spoilt."""
        self._call.wants_snapshot = self._wants_snapshot
        try:
            result = self._careful_result(self._state) if self._is_careful else self._result(self._state)
        except NotSerializableError:
            if self._is_careful:
                raise
            return None
        finally:
            self._state.watch = None
        counts, visits = self._counted(result.done.counts), [*self._visited, *result.done.visits]
        result.done.ClearField("counts")
        result.done.ClearField("visits")
        result.done.counts.extend(counts)
        result.done.visits.extend(visits)
        return result

    def _run_frames(self, frames: Sequence[bytes], turn: WindowTurn) -> bool:
        """Process frames. Return False if user code failed."""
        self._frames, self._timestamp_ms = frames, 0
        if not self._run_all(self._state, turn):
            return False
        self._ordinal = self.stage.ordinal
        return True

    def _repeat(self, before: "OpenRun", turn: WindowTurn) -> None:
        """Run the released parts of the previous try in the same way again, so that the states become the same."""
        for frames in before._released:
            self._forget()
            if not self._run_frames(frames, turn):
                raise DiagnosticError([Diagnostic.of("W430", step=self._failing)])
        self._released, self._counts, self._visited = before._released, before._counts, before._visited
        self._is_careful = self._timed.is_careful = True
        self._last_try, self._before = None, self._written()

    def _forget(self) -> None:
        """Prepare the stage for the next part, since other calls may have used it."""
        self.stage.clear()
        self.stage.ordinal = self._ordinal
        self._visits.waiting.clear()
        self._visits.counts = []

    def _written(self) -> dict[Cell, bytes]:
        """Return the present states as bytes, to restore them after a failure. Leave out states that pickle refuses."""
        saved: dict[Cell, bytes] = {}
        for table in self._state.tables.values():
            for cell in table.values():
                with suppress(NotSerializableError):
                    saved[cell] = cell.data if cell.live is UNREAD else self._state.write(cell)
        return saved

    def _counted(self, counts: Sequence[pb.StepCount]) -> list[pb.StepCount]:
        """Return the counts of all parts, including those of the present part."""
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
