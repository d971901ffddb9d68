"""Processes one bucket's messages of a micro-batch with the bucket's state, all or nothing."""

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, shown
from wallaroo.message.frame import HEADER_BYTES, TICK_PORT, VISIT_PORT, Frame, FrameError, read_body, split_frames
from wallaroo.message.key import readable
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.cell import UNREAD, Cell, CellTable
from wallaroo.worker.bucket.dead_letter import UnsavedChangeError, bury, has_wrong_times, sort_out
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.bucket.state_cells import cells_of, states_of
from wallaroo.worker.bucket.state_order import Messages, Place, in_turn, is_in_order
from wallaroo.worker.bucket.timed_turn import TimedTurn
from wallaroo.worker.bucket.visit import Visit, Visitor, VisitTurn, with_visits
from wallaroo.worker.bucket.window_run import WindowTurn
from wallaroo.worker.stage.crossing import read_messages
from wallaroo.worker.stage.flight import MESSAGE, OUTSIDE
from wallaroo.worker.stage.keyed import StateEntry
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import PICKLED, NotSerializableError, StateTooLargeError
from wallaroo.worker.window.window_order import Tick

Changed = dict[int, dict[bytes, Cell]]  # states to be saved, by the port of their table
MAX_CHANGE_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class BucketResult:
    """The messages that a bucket call sends after success."""

    outputs: list[pb.Output]
    changes: list[pb.StateChange]
    done: pb.StateDone


class BucketRun:
    """One bucket call.

    Args:
        stage: The stage; no other call may use it until a method returns.
        call: Last request of the call: index, bucket and options.
        frames: Frames of the call.
    """

    def __init__(self, stage: Stage, call: pb.Bucket, frames: Sequence[bytes]) -> None:
        self._stage, self._call, self._frames = stage, call, frames
        self._changed: Changed = {}
        self._timestamp_ms = 0
        self._checks_persist = self._is_watched = False
        self._failing = ""  # name of the step whose code failed

    def attempt(self, state: BucketState) -> BucketResult | None:
        """Process all messages at full speed. Return None if user code failed. The state is then spoilt.

        Raises:
            FrameError: The frames are damaged or do not belong to this stage.
        """
        self._begin(state)
        if not self._run_all(state, WindowTurn(self._stage, state)):
            return None
        try:
            return self._result(state)
        except NotSerializableError:
            return None

    def _run_all(self, state: BucketState, turn: WindowTurn) -> bool:
        """Process all messages. If user code fails, return False at full speed; else the message is a dead letter."""
        for part in self._of_states(turn, state):
            if isinstance(part, Visit):
                is_done = self._visit(part)
            elif isinstance(part, Tick):
                is_done = self._timed.tick(part)
            else:
                is_done = self._timed.run(part) if part.entry.is_timed else self._messages(part)
            if not is_done and self._before is None:
                return False
        if self._before is not None:
            turn.careful()
            return True
        is_done = turn.attempt()
        self._failing = turn.failing
        return is_done

    def _messages(self, part: Messages, deleted: Collection[bytes] = ()) -> bool:
        """Process messages of a state step. Return False if a message failed."""
        if self._before is None:
            return self._run(part)
        cells_of(self._stage, part, self._state)
        return not self._one_by_one(part, self._state, self._before, deleted)

    def _run(self, part: Messages) -> bool:
        """Process messages in one loop without checks between them. Return False if a message failed."""
        cells, states = states_of(self._stage, part, self._state)
        dirty = bytearray(len(cells))
        loop, flight = self._stage.loops[part.entry.number], self._stage.flight
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
        """Run a visit. At full speed, return False if a visitor failed."""
        for part in self._visits.parts(visit):
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

    def careful(self, state: BucketState) -> BucketResult:
        """Process message by message, and serialize the state after each, so that a failure concerns one message only.

        Args:
            state: The committed state, read again.

        Raises:
            DiagnosticError: C511 if a state cannot be written because of a message without `persist`, after another
                message had asked to persist it.
        """
        self._begin(state, is_careful=True)
        self._run_all(state, WindowTurn(self._stage, state))
        return self._careful_result(state)

    @staticmethod
    def _unread(state: BucketState) -> dict[Cell, bytes]:
        cells = (cell for table in state.tables.values() for cell in table.values())
        return {cell: cell.data for cell in cells if cell.live is UNREAD}

    def _careful_result(self, state: BucketState) -> BucketResult:
        try:
            return self._result(state)
        except NotSerializableError as err:
            if step := self._step_of(err.port):
                raise DiagnosticError([err.finding("C511", step, shown(readable(err.key)))]) from err
            raise

    def watched(self, state: BucketState, *, checks_persist: bool) -> BucketResult:
        """Run as `careful` or `checked`. Record work outside of messages, too, since it may have ended a process."""
        self._checks_persist, self._is_watched, state.watch = checks_persist, True, self._watch
        self._stage.note("")
        try:
            return self.careful(state)
        finally:
            state.watch = None

    def _watch(self, done: str, port: int, key: bytes) -> None:
        self._stage.note(f'{done} the state of step "{self._step_of(port)}", key {shown(readable(key))}')

    def _step_of(self, port: int) -> str:
        return next((each.step.name for each in self._stage.states.values() if each.node.state_port == port), "")

    def checked(self, state: BucketState) -> BucketResult:
        """Run like `careful`, and make a dead letter (C510) of each message that changes a state without `persist`."""
        self._checks_persist = True
        return self.careful(state)

    def _begin(self, state: BucketState, *, is_careful: bool = False) -> None:
        self._stage.clear()
        self._changed = {}
        self._state, self._visits = state, VisitTurn(self._stage, state, self._changed)
        self._timed = TimedTurn(self._visits, self._messages, self._in_place, is_careful=is_careful)
        self._before = self._unread(state) if is_careful else None  # for restores; None at full speed
        self._stage.flight[MESSAGE] = OUTSIDE

    def _of_states(self, turn: WindowTurn, state: BucketState) -> Iterator[Messages | Visit | Tick]:
        """Yield the parts for state computations in order. Messages and ticks of windows are added to `turn`."""
        places = [(header, data, start) for data in self._frames for header, start, _ in split_frames(data)]
        is_ordered = is_in_order(place for place in places if place[0].port in self._stage.states)
        parts = self._parts(places, turn, state)
        controls = {VISIT_PORT, TICK_PORT} if self._timed.tables else {VISIT_PORT}
        if not is_ordered or any(header.port in controls for header, _, _ in places):
            parts = in_turn(list(parts))  # reading all parts first also reads all visits
        for part in with_visits(parts, self._visits.waiting) if self._visits.waiting else parts:
            self._stage.box.timestamp_ms = part.timestamp_ms
            yield part

    def _parts(self, places: Sequence[Place], turn: WindowTurn, state: BucketState) -> Iterator[Messages]:
        for header, data, start in places:
            self._timestamp_ms = self._timestamp_ms or header.timestamp_ms
            self._stage.box.timestamp_ms = header.timestamp_ms
            if header.port == TICK_PORT:
                tick = turn.tick(header)
                if self._timed.tables:
                    self._visits.waiting.append(tick)
                continue
            frame = read_body(header, data, start + HEADER_BYTES)
            if header.port == VISIT_PORT:
                self._visits.take(frame)
                continue
            if not header.count and (header.port in self._stage.states or header.port in self._stage.windows):
                continue
            if header.port in self._stage.windows:
                turn.take(frame)
            else:
                yield self._read(frame, state)

    def _read(self, frame: Frame, state: BucketState) -> Messages:
        header = frame.header
        if header.port not in self._stage.states or not frame.keys:
            msg = f"a frame of port {header.port} with {len(frame.keys)} keys is not for stage {self._stage.id}"
            raise FrameError(msg)
        if frame.absent:
            msg = "messages without a value are not for a computation"
            raise FrameError(msg)
        entry = self._stage.states[header.port]
        self._stage.entered[entry.number] += header.count
        base = header.sequence
        sequences = [base + each for each in frame.sequences] if frame.sequences else range(base, base + header.count)
        ordinals = self._stage.take(header.count)
        enters = self._enters(entry, header.encoding, ordinals)
        messages, unread = read_messages(entry.values, frame, enters)
        self._stage.flight[MESSAGE] = OUTSIDE
        table = state.table(entry.node.state_port)
        times = frame.times() if self._stage.has_times or entry.is_timed else ()
        indexes, time = frame.key_indexes, header.timestamp_ms
        part = Messages(entry, table, frame.keys, messages, indexes, sequences, ordinals, times, time)
        if self._stage.skips or unread or (entry.is_timed and has_wrong_times(times)):
            part.keep(sort_out(self._stage, entry, part, unread, is_timed=entry.is_timed))
        return part

    def _enters(self, entry: StateEntry, encoding: int, ordinals: range) -> Callable[[int], bool] | None:
        """Return a function that marks a message as in flight unless it is skipped; None if the call is not watched."""
        if not self._is_watched or encoding not in (entry.values.encoding, PICKLED):
            return None

        def enter(position: int) -> bool:
            is_run = ordinals[position] - 1 not in self._stage.skips
            self._stage.flight[MESSAGE] = ordinals[position] if is_run else OUTSIDE
            return is_run

        return enter

    def _columns(self, keys: Sequence[bytes], times: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Yield the optional columns of the loops: keys and times."""
        if self._stage.has_keys:
            yield keys
        if self._stage.has_times:
            yield times

    def _one_by_one(
        self, part: Messages, state: BucketState, before: dict[Cell, bytes], deleted: Collection[bytes] = ()
    ) -> int:
        """Process messages, and serialize the state after each unless it is deleted. Return the number of failures."""
        loop = self._stage.loops[part.entry.number]
        after: list[bytes] = []
        always, failures = part.entry.step.is_always_persisted or part.entry.is_timed, 0

        def save(result: Any, live: Any) -> None:
            if key in deleted:
                return
            persists = always or (isinstance(result, tuple) and len(result) == 2 and result[1])
            try:
                after.append(state.write(cell))
            except NotSerializableError as err:
                # A state that is never persisted need not be serializable. A later failure of the key then restores an
                # older state.
                is_kept = cell.size >= 0 or key in self._changed.get(part.entry.node.state_port, ())
                if persists or (is_kept and isinstance(err, StateTooLargeError)):
                    raise
                return
            if self._checks_persist and not persists and after[-1] != before.get(cell, after[-1]):
                raise UnsavedChangeError

        with self._stage.guarded(part.entry.number, save):
            times = part.times or repeat(0, len(part.messages))
            rows = zip(part.messages, part.indexes, part.sequences, part.ordinals, times, strict=True)
            for message, index, sequence, ordinal, time in rows:
                key = part.keys[index]
                after.clear()
                dirty = bytearray(1)
                self._stage.flight[MESSAGE] = OUTSIDE
                cell = state.cell(part.table, key, part.entry.state.build)
                is_new = cell.size < 0 and key not in self._changed.get(part.entry.node.state_port, ())
                if self._checks_persist and not (is_new and part.entry.is_timed):
                    self._note(cell, state, before)
                columns = self._columns((key,), (time,))
                failed = loop([message], [0], [sequence], [cell.live], dirty, (ordinal,), self._stage.flight, *columns)
                if failed is not None:
                    failures += 1
                    bury(self._stage, part, key, failed)
                    self._put_back(part.table, key, before.get(cell), state)
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
        """Compare a state with what the step left, because later steps may have got a part of the state.

        Raises:
            DiagnosticError: C530 if they have changed it. Without this check the change would be saved.
        """
        with suppress(NotSerializableError):
            if state.write(part.table[key]) == written:
                return
        raise DiagnosticError([Diagnostic.of("C530", step=part.entry.step.name, key=shown(readable(key)))])

    @staticmethod
    def _note(cell: Cell, state: BucketState, before: dict[Cell, bytes]) -> None:
        """Keep the bytes that a state has before a message, to restore them if the message fails."""
        with suppress(NotSerializableError):
            before[cell] = state.write(cell)

    @staticmethod
    def _put_back(table: CellTable, key: bytes, saved: bytes | None, state: BucketState) -> None:
        """Restore the state that a key had before a failed message. Without a saved state the key had no state."""
        if saved is None:
            state.remove(table, key)
        else:
            table[key].live = state.load(key, saved)

    def _result(self, state: BucketState) -> BucketResult:
        index = self._call.index
        self._stage.flight[MESSAGE] = OUTSIDE
        self._visits.delete_absent()
        saved: Changed = self._changed
        if self._call.wants_snapshot:
            # The log does not have states that were never persisted, so a snapshot must not have them either.
            saved = {
                port: {key: cell for key, cell in table.items() if cell.size >= 0 or key in self._changed.get(port, ())}
                for port, table in state.tables.items()
            }
        changes: list[pb.StateChange] = []
        size = MAX_CHANGE_BYTES
        for entry in self._entries(state, saved):
            if size + len(entry) > MAX_CHANGE_BYTES:
                changes.append(pb.StateChange(index=index))
                size = 0
            changes[-1].entries.append(entry)
            size += len(entry)
        self._stage.flight[MESSAGE] = 0
        outputs = list(self._stage.outputs(index, self._timestamp_ms))
        done = pb.StateDone(
            index=index,
            nonce=secrets.randbits(64) or 1,
            snapshot=self._call.wants_snapshot,
            keys=state.count(),
            counts=self._stage.counts(),
            visits=self._visits.counts,
        )
        return BucketResult(outputs, changes, done)

    def _entries(self, state: BucketState, saved: Changed) -> Iterator[bytes]:
        if not self._call.wants_snapshot:
            for port, keys in self._visits.gone():
                yield state.absent_entry(port, keys)
        yield from state.entries(saved)
        for entry in self._stage.windows.values():
            if self._is_watched:
                self._stage.note(f'wrote the windows of step "{entry.step.name}"')
            yield from state.window_entries(entry.node.state_port, entry.window, is_whole=self._call.wants_snapshot)
