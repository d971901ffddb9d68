"""Keeps the keys of a window step in a bucket: their states, and the next times at which windows must be checked."""

import pickle
import struct
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from wallaroo.message.key import readable
from wallaroo.worker.bucket.cell import UNREAD, Cell, CellTable
from wallaroo.worker.value.value import ValueCodec
from wallaroo.worker.window.window import EARLIEST, Given, Window, WindowState

# Encoding of state entries: due time, and silence of the window. Then a pickle of the accumulators' encoding, the
# state's fields, and number and bytes of each accumulator.
WINDOWED = 33
HEAD = struct.Struct(">qq")
PICKLE_PROTOCOL = 4


class Calendar(CellTable):
    """The states of all keys of a window step in a bucket, and the next times at which windows must be checked.

    Attributes:
        window: The windows of the present call.
        changed: Keys whose state differs from the state in the log, with their cells.
        deleted: Keys whose states must be removed from the log.
        fresh: Keys that the next tick has to check, because they got a message since the last tick.
        heap: Times of ticks at which a key must be checked; None before the first call.
        last_tick: Time of the last tick, as far as it matters to a key.
    """

    __slots__ = ("changed", "deleted", "fresh", "heap", "last_tick", "window")
    encoding = WINDOWED
    window: Window

    def __init__(self, codec: ValueCodec) -> None:
        super().__init__(codec)
        self.changed: dict[bytes, Cell] = {}
        self.deleted: set[bytes] = set()
        self.fresh: dict[bytes, None] = {}
        self.heap: list[tuple[int, bytes]] | None = None
        self.last_tick = EARLIEST

    def begin(self, window: Window, changed: dict[bytes, Cell], deleted: set[bytes]) -> None:
        """Prepare for a bucket call. Before the first call, find from the log's entries when each key is due."""
        self.window, self.changed, self.deleted = window, changed, deleted
        if self.heap is None:
            self.heap = []
            for key, cell in self.items():
                due, patience = HEAD.unpack_from(cell.data)
                if due == EARLIEST:
                    self.fresh[key] = None
                    continue
                self.last_tick = max(self.last_tick, due - patience)
                if patience != window.patience:  # gap or delay has changed: the key is due then, or later
                    due += window.patience - patience if window.waits else min(0, window.patience - patience)
                    cell.data = HEAD.pack(due, window.patience) + cell.data[HEAD.size :]
                self.heap.append((due, key))
            heapify(self.heap)

    def find(self, key: bytes) -> WindowState | None:
        """Return the state of a key, or None.

        Raises:
            StateReadError: The accumulators of the state cannot be read.
        """
        cell = self.get(key)
        if cell is None:
            return None
        if cell.live is UNREAD:
            self.wake(key, cell)
        state: WindowState = cell.live
        return state

    def _decode(self, key: bytes, data: bytes) -> WindowState:
        encoding, fields, panes = pickle.loads(data[HEAD.size :])
        load = self.codec.loader(encoding)
        state = WindowState.of(readable(key), fields, {number: load(pane) for number, pane in panes})
        due, _ = HEAD.unpack_from(data)
        state.queued = None if due == EARLIEST else due
        return state

    def encode(self, live: Any) -> bytes:
        """Return a state as bytes."""
        panes = [(number, self.codec.dump_state(pane)) for number, pane in live.panes.items()]
        content = pickle.dumps((self.codec.encoding, live.fields(), panes), PICKLE_PROTOCOL)
        return HEAD.pack(self.window.due(live), self.window.patience) + content

    def encode_all(self, lives: list[Any]) -> list[bytes]:
        """Return states as bytes."""
        return list(map(self.encode, lives))

    def enroll(self, key: bytes, state: WindowState) -> None:
        """Note when a key is due (in `heap`, or in `fresh` for the next tick): a tick then checks its windows."""
        assert self.heap is not None
        due = self.window.due(state)
        if due == EARLIEST:
            self.fresh[key] = None
        elif state.queued is None or due < state.queued:
            state.queued = due
            heappush(self.heap, (due, key))

    def drop(self, key: bytes) -> None:
        """Remove the state of a key, also from the log."""
        if self[key].size >= 0:
            self.deleted.add(key)
        self.remove(key)
        self.changed.pop(key, None)

    def tick(self, time: int) -> Iterator[tuple[bytes, Given]]:
        """Apply a tick to all keys. Yield the keys whose windows are due, in order, with the results of the windows."""
        window = self.window
        if window.waits and time < self.last_tick:  # the clock was set back: the silence of keys begins now
            for key in self:
                state = self.find(key)
                if state is not None and state.silent is not None and state.silent > time:
                    self.fresh[key] = None
        self.last_tick, fresh, self.fresh = time, self.fresh, {}
        for key in fresh:  # if ticks move time, these are keys from a log of a time when ticks reported silence
            if (state := self.find(key)) is None:
                continue
            if window.waits:
                state.silent, self.changed[key] = time, self[key]
                state.slow()
            self.enroll(key, state)
        for key in sorted(self._due(time)):
            state = self.find(key)
            assert state is not None
            if not EARLIEST < window.due(state) <= time:
                self.enroll(key, state)
                continue
            emitted, is_over = window.tick(state, time)
            if is_over:
                self.drop(key)
            else:
                self.changed[key] = self[key]
                self.enroll(key, state)
            yield key, emitted

    def _due(self, time: int) -> Iterator[bytes]:
        """Yield the keys that a tick of this time must check, and remove them from the heap."""
        assert self.heap is not None
        while self.heap and self.heap[0][0] <= time:
            due, key = heappop(self.heap)
            state = self.find(key)
            if state is not None and state.queued == due:
                state.queued = None
                yield key
