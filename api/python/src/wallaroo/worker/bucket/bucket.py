"""Runs one bucket's messages of a micro-batch on its state, all or nothing."""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, shown
from wallaroo.message.frame import HEADER_BYTES, TICK_PORT, VISIT_PORT, Frame, FrameError, read_body, split_frames
from wallaroo.message.key import readable
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.dead_letter import UnsavedChangeError, bury, refuse, sort_out
from wallaroo.worker.bucket.state import UNREAD, BucketState, Cell, NotAsked, Table
from wallaroo.worker.bucket.state_order import Messages, Place, in_turn, is_in_order
from wallaroo.worker.bucket.visit import Visit, VisitTurn, with_visits
from wallaroo.worker.bucket.window_run import WindowTurn
from wallaroo.worker.stage.crossing import read_messages
from wallaroo.worker.stage.flight import MESSAGE, OUTSIDE
from wallaroo.worker.stage.keyed import StateEntry
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import PICKLED, NotSerializableError, StateReadError, StateTooLargeError

MAX_CHANGE_BYTES = 8 * 1024 * 1024
NOTHING = Cell(None)  # in the place of the state that a key does not have


@dataclass(slots=True)
class BucketResult:
    """What a bucket call that has succeeded sends."""

    outputs: list[pb.Output]
    changes: list[pb.StateChange]
    done: pb.StateDone


class BucketRun:
    """One bucket call.

    Args:
        stage: The stage; no other call may run on it until a method returns.
        call: Index, bucket and wishes of the call.
    """

    def __init__(self, stage: Stage, call: pb.Bucket, frames: Sequence[bytes]) -> None:
        self._stage, self._call, self._frames = stage, call, frames
        self._changed: dict[int, Table] = {}
        self._timestamp_ms = 0
        self._checks_persist = self._is_watched = False
        self._failing = ""  # the step whose code failed

    def attempt(self, state: BucketState) -> BucketResult | None:
        """Run at full speed; None when user code failed: the state is then spoilt.

        Raises:
            FrameError: The frames are damaged or do not belong to this stage.
        """
        self._begin(state)
        if not self._run_fast(state, WindowTurn(self._stage, state)):
            return None
        try:
            return self._result(state)
        except NotSerializableError:
            return None

    def _run_fast(self, state: BucketState, turn: WindowTurn) -> bool:
        """Run all messages at full speed; False when user code failed."""
        for part in self._of_states(turn, state):
            is_done = self._visit(part, state) if isinstance(part, Visit) else self._run(part, state)
            if not is_done:
                return False
        is_done = turn.attempt()
        self._failing = turn.failing
        return is_done

    def _run(self, part: Messages, state: BucketState) -> bool:
        """Run messages one after the other; False when one failed."""
        cells, states = self._states(part, state)
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

    def _visit(self, visit: Visit, state: BucketState) -> bool:
        """Run a visit; False when a visitor failed."""
        for part in self._visits.parts(visit):
            with self._visits.visitor(visit, part) as deleted:
                if not self._run(part, state):
                    return False
            self._visits.delete(part, deleted)
        return True

    def _visit_one_by_one(self, visit: Visit, state: BucketState, before: dict[Cell, bytes]) -> None:
        for part in self._visits.parts(visit):
            count = self._visits.counts[-1]
            for position in range(len(part.keys)):
                one = part.pick([position])
                with self._visits.visitor(visit, one) as deleted:
                    failed = self._one_by_one(one, state, before, deleted)
                count.failed += failed
                if not failed:
                    self._visits.delete(one, deleted)

    def careful(self, state: BucketState) -> BucketResult:
        """Run message by message, with each state serialized in between, so that a failure spoils one message only.

        Args:
            state: The committed state once more.

        Raises:
            DiagnosticError: C511, a state that a message asked to persist was spoilt by a later one that did not.
        """
        self._begin(state)
        self._run_carefully(state, WindowTurn(self._stage, state), self._unread(state))
        return self._careful_result(state)

    @staticmethod
    def _unread(state: BucketState) -> dict[Cell, bytes]:
        cells = (cell for table in state.tables.values() for cell in table.values())
        return {cell: cell.data for cell in cells if cell.live is UNREAD}

    def _run_carefully(self, state: BucketState, turn: WindowTurn, before: dict[Cell, bytes]) -> None:
        """Run message by message; `before` has the states to go back to."""
        for part in self._of_states(turn, state):
            if isinstance(part, Visit):
                self._visit_one_by_one(part, state, before)
                continue
            self._cells(part, state)
            self._one_by_one(part, state, before)
        turn.careful()

    def _careful_result(self, state: BucketState) -> BucketResult:
        try:
            return self._result(state)
        except NotSerializableError as err:
            if step := self._step_of(err.port):
                raise DiagnosticError([err.finding("C511", step, shown(readable(err.key)))]) from err
            raise

    def watched(self, state: BucketState, *, checks_persist: bool) -> BucketResult:
        """Run like `careful` or `checked`, and note what is done outside of messages: it has ended a process before."""
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
        """Run like `careful`, and make a dead letter (C510) of a message that changes a state without persisting it."""
        self._checks_persist = True
        return self.careful(state)

    def _begin(self, state: BucketState) -> None:
        self._stage.clear()
        self._changed = {}
        self._visits = VisitTurn(self._stage, state, self._changed)
        self._stage.flight[MESSAGE] = OUTSIDE

    def _of_states(self, turn: WindowTurn, state: BucketState) -> Iterator[Messages | Visit]:
        """Yield messages of state computations and visits in order; those of windows, and ticks, wait in `turn`."""
        places = [(header, data, start) for data in self._frames for header, start, _ in split_frames(data)]
        is_ordered = is_in_order(place for place in places if place[0].port in self._stage.states)
        parts = self._parts(places, turn, state)
        if not is_ordered or any(header.port == VISIT_PORT for header, _, _ in places):
            parts = in_turn(list(parts))  # so all visits have been read
        for part in with_visits(parts, self._visits.waiting) if self._visits.waiting else parts:
            self._stage.box.timestamp_ms = part.timestamp_ms
            yield part

    def _parts(self, places: Sequence[Place], turn: WindowTurn, state: BucketState) -> Iterator[Messages]:
        for header, data, start in places:
            self._timestamp_ms = self._timestamp_ms or header.timestamp_ms
            self._stage.box.timestamp_ms = header.timestamp_ms
            if header.port == TICK_PORT:
                turn.tick(header)
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
        times = frame.times() if self._stage.has_times else ()
        indexes, time = frame.key_indexes, header.timestamp_ms
        part = Messages(entry, table, frame.keys, messages, indexes, sequences, ordinals, times, time)
        if self._stage.skips or unread:
            sort_out(self._stage, part, unread)
        return part

    def _enters(self, entry: StateEntry, encoding: int, ordinals: range) -> Callable[[int], bool] | None:
        """Return what lets a message be in flight while user code reads it, unless it is skipped; None: not watched."""
        if not self._is_watched or encoding not in (entry.values.encoding, PICKLED):
            return None

        def enter(position: int) -> bool:
            is_run = ordinals[position] - 1 not in self._stage.skips
            self._stage.flight[MESSAGE] = ordinals[position] if is_run else OUTSIDE
            return is_run

        return enter

    def _columns(self, keys: Sequence[bytes], times: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Yield what the loops take besides messages and states: keys and times, if at all."""
        if self._stage.has_keys:
            yield keys
        if self._stage.has_times:
            yield times

    def _states(self, part: Messages, state: BucketState) -> tuple[list[Cell], list[Any]]:
        """Return cells and live states of the keys; see `_cells`."""
        cells: list[Any] = list(map(part.table.get, part.keys))
        # The loops of `_cells` are for the first message of a key; with a million keys they would cost all others, too.
        if part.entry.closed_keys is None and set(map(type, cells)) == {Cell}:
            states = [cell.live for cell in cells]
            if NotAsked not in set(map(type, states)):
                return cells, states
        cells = self._cells(part, state)
        return cells, [cell.live for cell in cells]

    def _cells(self, part: Messages, state: BucketState) -> list[Cell]:
        """Return the states of the keys; messages of keys that cannot have one become dead letters.

        The cell of a key without messages stands for nothing.
        """
        refused: dict[int, BaseException | Diagnostic] = {}
        used = set(part.indexes) if part.is_thinned else range(len(part.keys))
        cells: list[Any] = list(map(part.table.get, part.keys))
        for index, cell in enumerate(cells):
            if cell is not None and cell.live is not UNREAD and part.entry.closed_keys is None:
                continue
            if index not in used:
                cells[index] = NOTHING
                continue
            key = part.keys[index]
            finding = self._unknown(part, key)
            if finding is not None:
                refused[index] = finding
                cells[index] = NOTHING
                continue
            try:
                cells[index] = state.cell(part.table, key, part.entry.state.build)
            except StateReadError:
                raise
            except BaseException as err:
                refused[index] = err
                cells[index] = NOTHING
        if refused:
            refuse(self._stage, part, refused)
        return cells

    def _unknown(self, part: Messages, key: bytes) -> Diagnostic | None:
        closed = part.entry.closed_keys
        if closed is None or key in closed:
            return None
        return Diagnostic.of("C502", step=part.entry.step.name, key=shown(readable(key)), state=part.entry.state.name)

    def _one_by_one(
        self, part: Messages, state: BucketState, before: dict[Cell, bytes], deleted: Collection[bytes] = ()
    ) -> int:
        """Run messages, each state but a deleted one serialized after each; returns how many failed."""
        loop = self._stage.loops[part.entry.number]
        after: list[bytes] = []
        always, failures = part.entry.step.is_always_persisted, 0

        def save(result: Any, live: Any) -> None:
            if key in deleted:
                return
            persists = always or (isinstance(result, tuple) and len(result) == 2 and result[1])
            try:
                after.append(state.write(cell))
            except NotSerializableError as err:
                # What is never persisted need not be serializable; a failure of the key then goes further back.
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
                if self._checks_persist:
                    self._note(cell, state, before)
                columns = self._columns((key,), (time,))
                failed = loop([message], [0], [sequence], [cell.live], dirty, (ordinal,), self._stage.flight, *columns)
                if failed is not None:
                    failures += 1
                    bury(self._stage, part, key, failed)
                    self._put_back(part.table, key, before.get(cell), state)
                    continue
                if after:  # else it cannot be serialized
                    before[cell] = after[-1]
                if dirty[0]:
                    self._changed.setdefault(part.entry.node.state_port, {})[key] = cell
        return failures

    @staticmethod
    def _note(cell: Cell, state: BucketState, before: dict[Cell, bytes]) -> None:
        """Note what a state is before a message; a copy from the cache was not read from a log."""
        with suppress(NotSerializableError):
            before[cell] = state.write(cell)

    @staticmethod
    def _put_back(table: Table, key: bytes, saved: bytes | None, state: BucketState) -> None:
        """Give a key the state from before the message that failed: the saved one, else the committed one."""
        if saved is None:
            state.remove(table, key)
        else:
            table[key].live = state.load(key, saved)

    def _result(self, state: BucketState) -> BucketResult:
        index = self._call.index
        self._stage.flight[MESSAGE] = OUTSIDE
        self._visits.delete_absent()
        saved: dict[int, Table] = self._changed
        if self._call.wants_snapshot:
            # A state that was never persisted is no part of the log, nor of a snapshot.
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

    def _entries(self, state: BucketState, saved: Mapping[int, Table]) -> Iterator[bytes]:
        if not self._call.wants_snapshot:
            for port, keys in self._visits.gone():
                yield state.absent_entry(port, keys)
        yield from state.entries(saved)
        for entry in self._stage.windows.values():
            if self._is_watched:
                self._stage.note(f'wrote the windows of step "{entry.step.name}"')
            yield from state.window_entries(entry.node.state_port, entry.window, is_whole=self._call.wants_snapshot)
