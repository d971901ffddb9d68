"""Processes messages of one bucket with the bucket's states. A call that fails changes no state."""

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, shown
from wallaroo.message.frame import HEADER_BYTES, TICK_PORT, VISIT_PORT, Frame, FrameError, read_body, split_frames
from wallaroo.message.key import readable
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.cell import UNREAD, Cell, CellTable
from wallaroo.worker.bucket.failed_message import UnsavedChangeError, bury, has_wrong_times, sort_out
from wallaroo.worker.bucket.message_order import Messages, Place, in_turn, is_in_order
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.bucket.state_cells import cells_of, states_of
from wallaroo.worker.bucket.timed_turn import TimedTurn
from wallaroo.worker.bucket.visit import Tick, Visit, Visitor, VisitTurn, with_visits
from wallaroo.worker.bucket.window_run import WindowTurn
from wallaroo.worker.stage.crossing import read_messages
from wallaroo.worker.stage.flight import MESSAGE, OUTSIDE
from wallaroo.worker.stage.keyed import StateEntry, WindowEntry
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.result import persisted
from wallaroo.worker.value.value import PICKLED, NotSerializableError, StateTooLargeError

Changed = dict[int, dict[bytes, Cell]]  # states to be saved, by the port of their table
MAX_CHANGE_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class BucketResult:
    """The replies of a bucket call that has succeeded: outputs, changes of states, and the end of the call."""

    outputs: list[pb.Output]
    changes: list[pb.StateChange]
    done: pb.Done


class BucketRun:
    """One try of a bucket call: processes frames with the bucket's states. Its subclass `CallRun` runs a whole call.

    A try at full speed has no copies of states. If user code fails in it, methods return False, and a careful try
    follows: it processes message by message, and failed messages become dead letters.

    Args:
        stage: The stage; no other call may use it while a method runs.
        call: The first request of the call: index, bucket and options.
        state: The committed state.
        checks_persist: Whether a change of state without `persist` is a failure. The check is slow.
    """

    def __init__(self, stage: Stage, call: pb.Bucket, state: BucketState, *, checks_persist: bool) -> None:
        self.stage, self._call, self._state = stage, call, state
        self._frames: Sequence[bytes] = ()
        self._timestamp_ms = 0
        self._checks_persist, self._is_watched = checks_persist, call.careful
        self._failing = ""  # name of the step whose code failed

    def _begin(self, *, is_careful: bool) -> None:
        """Prepare the try. A careful try serializes a state after each message, to restore it after a failure."""
        self.stage.clear()
        self._changed: Changed = {}
        self._visits = VisitTurn(self.stage, self._state, self._changed)
        self._turn = WindowTurn(self._visits)
        self._timed = TimedTurn(self._visits, self._messages, self._in_place, is_careful=is_careful)
        # The states to restore after a failure; None at full speed. With `checks_persist` each message notes its own.
        self._before = ({} if self._checks_persist else self._written()) if is_careful else None
        self.stage.flight[MESSAGE] = OUTSIDE
        if self._is_watched:
            self._state.watch = self._watch
            self.stage.note("")

    def _run_frames(self, frames: Sequence[bytes]) -> bool:
        """Process frames. Return False if user code failed: then the call must run again message by message."""
        self._frames, self._timestamp_ms = frames, 0
        for part in self._of_states():
            if isinstance(part, Visit):
                is_done = self._visit(part)
            elif isinstance(part, Tick):
                is_done = self._timed.run_tick(part)
            else:
                is_done = self._timed.run(part) if part.entry.is_timed else self._messages(part)
            if not is_done and self._before is None:
                return False
        if self._before is not None:
            self._turn.careful()
            return True
        is_done = self._turn.attempt()
        self._failing = self._turn.failing
        return is_done

    def _messages(self, part: Messages, deleted: Collection[bytes] = ()) -> bool:
        """Process messages of a state step. Return False if a message failed."""
        if self._before is None:
            return self._run(part)
        return not self._one_by_one(part, self._before, deleted)

    def _run(self, part: Messages) -> bool:
        """Process messages of a state step in one loop, without copies of states. Return False if one has failed."""
        cells, states = states_of(self.stage, part, self._state)
        dirty = bytearray(len(cells))
        loop, flight = self.stage.loops[part.entry.number], self.stage.flight
        columns = self._columns(part.keys, part.times)
        failed = loop(part.messages, part.indexes, part.sequences, states, dirty, part.ordinals, flight, *columns)
        flight[MESSAGE] = OUTSIDE
        if failed is None:
            changed = self._changed.setdefault(part.entry.node.state_port, {})
            pairs = zip(part.keys, cells, strict=True)
            changed.update(pairs if 0 not in dirty else compress(pairs, dirty))
        else:
            self._failing = part.entry.step.name
        return failed is None

    def _visit(self, visit: Visit) -> bool:
        """Run the visitors (user code for each key) of a visit. First run the timers that are due, as at a tick."""
        entries = list(self._visits.entries(visit))
        if not self._timed.tick(visit, {entry.node.state_port for entry in entries}):
            return False
        for entry in entries:
            part = self._visits.part(visit, entry)
            run, keys = self._visits.visitor(visit, part.entry), range(len(part.keys))
            ones = [part] if self._before is None else (part.pick([at]) for at in keys)
            failed = sum(not self._in_place(one, run) for one in ones)
            self._visits.counts[-1].failed += failed
            if failed and self._before is None:
                return False
        return True

    def _in_place(self, part: Messages, run: Visitor) -> bool:
        """Run a visitor or a timer's callback in place of the step's function. Return False if it failed."""
        with self._visits.replaced(part, run) as deleted:
            is_done = self._messages(part, deleted)
        if is_done:
            self._visits.delete(part.table, part.entry.node.state_port, deleted)
        return is_done

    def _written(self) -> dict[Cell, bytes]:
        """Return the present states as bytes, to restore them after a failure. Leave out states that pickle refuses."""
        saved: dict[Cell, bytes] = {}
        for port in {entry.node.state_port for entry in self.stage.states.values()}:
            table = self._state.table(port)
            for cell in table.values():
                with suppress(NotSerializableError):
                    saved[cell] = cell.data if cell.live is UNREAD else self._state.write(table, cell)
        return saved

    def _watch(self, done: str, port: int, key: bytes) -> None:
        self.stage.note(f'{done} the state of step "{self._step_of(port)}", key {shown(readable(key))}')

    def _step_of(self, port: int) -> str:
        entries: list[StateEntry | WindowEntry] = [*self.stage.states.values(), *self.stage.windows.values()]
        return next((each.step.name for each in entries if each.node.state_port == port), "")

    def _of_states(self) -> Iterator[Messages | Visit | Tick]:
        """Yield the messages, visits and ticks for state steps, in order. `WindowTurn` gets those for window steps."""
        places = [(header, data, start) for data in self._frames for header, start, _ in split_frames(data)]
        is_ordered = is_in_order(place for place in places if place[0].port in self.stage.states)
        parts = self._parts(places)
        controls = {VISIT_PORT, TICK_PORT} if self._timed.tables else {VISIT_PORT}
        if not is_ordered or any(header.port in controls for header, _, _ in places):
            parts = in_turn(list(parts))  # reading all parts first also reads all visits
        for part in with_visits(parts, self._visits.waiting) if self._visits.waiting else parts:
            self.stage.box.time = None if isinstance(part, Messages) else part.timestamp_ms
            yield part

    def _parts(self, places: Sequence[Place]) -> Iterator[Messages]:
        for header, data, start in places:
            self._timestamp_ms = self._timestamp_ms or header.timestamp_ms
            if header.port == TICK_PORT:
                tick = self._turn.tick(header)
                if self._timed.tables:
                    self._visits.waiting.append(tick)
                continue
            frame = read_body(header, data, start + HEADER_BYTES)
            if header.port == VISIT_PORT:
                self._visits.take(frame)
                continue
            self.stage.box.enter(frame)
            if not header.count and (header.port in self.stage.states or header.port in self.stage.windows):
                continue
            part = self._read(frame)
            if header.port in self.stage.windows:
                self._turn.take(part)
            else:
                yield part

    def _read(self, frame: Frame) -> Messages:
        header = frame.header
        entry = self.stage.states.get(header.port) or self.stage.windows.get(header.port)
        if entry is None or not frame.keys:
            msg = f"a frame of port {header.port} with {len(frame.keys)} keys is not for stage {self.stage.id}"
            raise FrameError(msg)
        if frame.absent:
            msg = "messages without a value are not for a computation"
            raise FrameError(msg)
        self.stage.entered[entry.number] += header.count
        base = header.sequence
        sequences = [base + each for each in frame.sequences] if frame.sequences else range(base, base + header.count)
        ordinals = self.stage.take(header.count)
        enters = self._enters(entry, header.encoding, ordinals)
        messages, unread = read_messages(entry.values, frame, enters)
        self.stage.flight[MESSAGE] = OUTSIDE
        table = self._state.table(entry.node.state_port)
        times = frame.times() if self.stage.has_times or entry.is_timed else ()
        part = Messages(entry, table, frame.keys, messages, frame.key_indexes, sequences, ordinals, times)
        if self.stage.skips or unread or (entry.is_timed and has_wrong_times(times)):
            sort_out(self.stage, part, unread)
        return part

    def _enters(self, entry: StateEntry | WindowEntry, encoding: int, ordinals: range) -> Callable[[int], bool] | None:
        """Return a function to call before a message is read: it notes the message as in flight; None if not needed."""
        if not self._is_watched or encoding not in (entry.values.encoding, PICKLED):
            return None

        def enter(position: int) -> bool:
            is_run = ordinals[position] - 1 not in self.stage.skips
            self.stage.flight[MESSAGE] = ordinals[position] if is_run else OUTSIDE
            return is_run

        return enter

    def _columns(self, keys: Sequence[bytes], times: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Yield the keys and the times of messages, each only if the generated loops take it as an argument."""
        if self.stage.has_keys:
            yield keys
        if self.stage.has_times:
            yield times

    def _one_by_one(self, part: Messages, before: dict[Cell, bytes], deleted: Collection[bytes]) -> int:
        """Process messages one by one, and serialize each state after its message. Return the number of failures."""
        loop, state = self.stage.loops[part.entry.number], self._state
        after: list[bytes] = []
        always, failures = part.entry.step.is_always_persisted or part.entry.is_timed, 0

        def save(result: Any, live: Any) -> None:
            if key in deleted:
                return
            persists = always or persisted(result)
            try:
                after.append(state.write(part.table, cell))
            except NotSerializableError as err:
                # A state that is never persisted need not be serializable. A later failure of the key then restores an
                # older state.
                is_kept = cell.size >= 0 or key in self._changed.get(part.entry.node.state_port, ())
                if persists or (is_kept and isinstance(err, StateTooLargeError)):
                    raise
                return
            if self._checks_persist and not persists and after[-1] != before.get(cell, after[-1]):
                raise UnsavedChangeError

        with self.stage.guarded(part.entry.number, save):
            for at in range(len(part.messages)):
                one, dirty = part.pick([at]), bytearray(1)
                (key,) = one.keys
                after.clear()
                self.stage.flight[MESSAGE] = OUTSIDE
                (cell,) = cells_of(self.stage, one, state)
                if not one.messages:  # a dead letter: its key cannot have a state
                    continue
                is_new = cell.size < 0 and key not in self._changed.get(part.entry.node.state_port, ())
                if self._checks_persist and not (is_new and part.entry.is_timed):
                    self._note(part.table, cell, state, before)
                columns, flight = self._columns(one.keys, one.times), self.stage.flight
                failed = loop(one.messages, [0], one.sequences, [cell.live], dirty, one.ordinals, flight, *columns)
                if failed is not None:
                    failures += 1
                    bury(self.stage, part, key, failed)
                    self._put_back(part.table, key, before.get(cell))
                    continue
                if after:  # empty if the state cannot be serialized
                    before[cell] = after[-1]
                if after and self._checks_persist:
                    self._check_unchanged(part, key, state, after[-1])
                if dirty[0]:
                    self._changed.setdefault(part.entry.node.state_port, {})[key] = cell
        return failures

    @staticmethod
    def _check_unchanged(part: Messages, key: bytes, state: BucketState, written: bytes) -> None:
        """Check that no later step has changed the state, e.g. through an object in its message.

        Raises:
            DiagnosticError: C530 if a step has changed it. Without this check the change would be saved.
        """
        with suppress(NotSerializableError):
            if state.write(part.table, part.table[key]) == written:
                return
        raise DiagnosticError([Diagnostic.of("C530", step=part.entry.step.name, key=shown(readable(key)))])

    @staticmethod
    def _note(table: CellTable, cell: Cell, state: BucketState, before: dict[Cell, bytes]) -> None:
        """Keep the bytes that a state has before a message, to restore them if the message fails."""
        with suppress(NotSerializableError):
            before[cell] = state.write(table, cell)

    @staticmethod
    def _put_back(table: CellTable, key: bytes, saved: bytes | None) -> None:
        """Restore the state that a key had before a failed message. Remove the state if `saved` is None."""
        if saved is None:
            table.remove(key)
        else:
            table[key].live = table.load(key, saved)

    def _result(self, *, is_whole: bool) -> BucketResult:
        """Serialize the changed states (all if `is_whole`), and return them with the outputs that were not sent yet."""
        index, state = self._call.index, self._state
        self.stage.flight[MESSAGE] = OUTSIDE
        self._visits.delete_absent()
        saved: Changed = self._changed
        if is_whole:
            # The log does not have states that were never persisted, so a snapshot must not have them either.
            saved = {
                port: {key: cell for key, cell in table.items() if cell.size >= 0 or key in self._changed.get(port, ())}
                for port, table in state.tables.items()
            }
        changes: list[pb.StateChange] = []
        size = MAX_CHANGE_BYTES
        for entry in self._entries(saved, is_whole=is_whole):
            if size + len(entry) > MAX_CHANGE_BYTES:
                changes.append(pb.StateChange(index=index))
                size = 0
            changes[-1].entries.append(entry)
            size += len(entry)
        self.stage.flight[MESSAGE] = 0
        outputs = list(self.stage.outputs(index, self._timestamp_ms))
        done = pb.Done(
            index=index,
            nonce=secrets.randbits(64) or 1,
            snapshot=is_whole,
            keys=state.count(),
        )
        return BucketResult(outputs, changes, done)

    def _entries(self, saved: Changed, *, is_whole: bool) -> Iterator[bytes]:
        if not is_whole:
            for port, keys in self._visits.gone():
                yield self._state.absent_entry(port, keys)
        yield from self._state.entries(saved)
