"""The keys of one window step in one bucket: their states, and the times of ticks at which they must be checked."""

import pickle
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from wallaroo.message import state_piece
from wallaroo.message.frame import Frame, encode_frame
from wallaroo.message.key import readable
from wallaroo.worker.value.value import StateReadError, StateTooLargeError, ValueCodec
from wallaroo.worker.window.window import EARLIEST, Given, Window, WindowState

# Encoding of state entries: due time, and silence of the window. Then a pickle of the accumulators' encoding, the
# state's fields, and number and bytes of each accumulator.
WINDOWED = 33
HEAD = struct.Struct(">qq")
PICKLE_PROTOCOL = 4


@dataclass(slots=True)
class Calendar:
    """States of the keys of one window step.

    Attributes:
        max_bytes: Largest size of a state in bytes. A state that is larger already may not grow.
        live: States that have been read or made in this process.
        stored: Serialized states of the other keys.
        sizes: Serialized size of each state that is in the log.
        changed: Keys whose state differs from the state in the log.
        fresh: Keys that the next tick has to check, because they got a message since the last tick.
        heap: Times of ticks at which a key must be checked; None before the first call.
        last_tick: Time of the last tick, as far as it matters to a key.
        written: Bytes of all states as they were last written or read.
        unread: Bytes of the states in `stored`.
    """

    codec: ValueCodec
    max_bytes: int
    live: dict[bytes, WindowState] = field(default_factory=dict)
    stored: dict[bytes, bytes] = field(default_factory=dict)
    sizes: dict[bytes, int] = field(default_factory=dict)
    changed: dict[bytes, None] = field(default_factory=dict)
    fresh: dict[bytes, None] = field(default_factory=dict)
    heap: list[tuple[int, bytes]] | None = None
    last_tick: int = EARLIEST
    written: int = 0
    unread: int = 0

    def read(self, frame: Frame) -> None:
        """Read an entry of the state log."""
        absent = set(frame.absent)
        for position, data in enumerate(frame.values()):
            key = frame.keys[frame.key_indexes[position]]
            self._forget(key)
            self._measure(key, b"" if position in absent else data)
            if position not in absent:
                self.stored[key] = data
                self.unread += len(data)

    def begin(self, window: Window) -> None:
        """Prepare for a call."""
        self.changed = {}
        if self.heap is None:
            self.heap = []
            for key, data in self.stored.items():
                due, patience = HEAD.unpack_from(data)
                if due == EARLIEST:
                    self.fresh[key] = None
                    continue
                self.last_tick = max(self.last_tick, due - patience)
                if patience != window.patience:  # gap or delay has changed: the key is due then, or later
                    due += window.patience - patience if window.waits else min(0, window.patience - patience)
                    self.stored[key] = HEAD.pack(due, window.patience) + data[HEAD.size :]
                self.heap.append((due, key))
            heapify(self.heap)

    def find(self, key: bytes) -> WindowState | None:
        """Return the state of a key, or None.

        Raises:
            StateReadError: The accumulators of the state cannot be read.
        """
        state = self.live.get(key)
        if state is None and key in self.stored:
            state = self.live[key] = self.load(key, self.stored[key])
            self._forget(key)
        return state

    def load(self, key: bytes, data: bytes) -> WindowState:
        """Read a state from its bytes.

        Raises:
            StateReadError: The bytes cannot be read.
        """
        try:
            encoding, fields, panes = pickle.loads(data[HEAD.size :])
            load = self.codec.loader(encoding)
            state = WindowState.of(readable(key), fields, {number: load(pane) for number, pane in panes})
        except BaseException as err:
            raise StateReadError(key, err) from err
        due, _ = HEAD.unpack_from(data)
        state.queued = None if due == EARLIEST else due
        return state

    def dump(self, window: Window, key: bytes, state: WindowState) -> bytes:
        """Return a state as bytes.

        Raises:
            StateTooLargeError: The state is too large.
        """
        panes = [(number, self.codec.dump_state(pane)) for number, pane in state.panes.items()]
        content = pickle.dumps((self.codec.encoding, state.fields(), panes), PICKLE_PROTOCOL)
        if (size := HEAD.size + len(content)) > max(self.max_bytes, self.sizes.get(key, 0)):
            raise StateTooLargeError(state, size, self.max_bytes, key=key)
        return HEAD.pack(window.due(state), window.patience) + content

    def enroll(self, window: Window, key: bytes, state: WindowState) -> None:
        """Record a key, so that a tick checks the key's state when the state is due."""
        assert self.heap is not None
        due = window.due(state)
        if due == EARLIEST:
            self.fresh[key] = None
        elif state.queued is None or due < state.queued:
            state.queued = due
            heappush(self.heap, (due, key))

    def drop(self, key: bytes) -> None:
        """Remove the state of a key."""
        self.live.pop(key, None)
        self._forget(key)
        self.fresh.pop(key, None)

    def _forget(self, key: bytes) -> None:
        self.unread -= len(self.stored.pop(key, b""))

    def _measure(self, key: bytes, data: bytes) -> None:
        """Record a state's size in the log. Empty data means that the state is removed."""
        self.written += len(data) - self.sizes.pop(key, 0)
        if data:
            self.sizes[key] = len(data)

    def tick(self, window: Window, time: int) -> Iterator[tuple[bytes, Given]]:
        """Run a tick, and yield the keys whose windows are due, in the order of their bytes."""
        assert self.heap is not None
        if window.waits:
            self._go_back(window, time)
        fresh, self.fresh = self.fresh, {}
        for key in fresh:  # if ticks move time, these are keys from a log of a time when ticks reported silence
            if (state := self.find(key)) is None:
                continue
            if window.waits:
                state.silent, self.changed[key] = time, None
                state.slow()
            self.enroll(window, key, state)
        for key in sorted(self._due(time)):
            state = self.find(key)
            assert state is not None
            if not EARLIEST < window.due(state) <= time:
                self.enroll(window, key, state)
                continue
            emitted, is_over = window.tick(state, time)
            self.changed[key] = None
            if is_over:
                self.drop(key)
            else:
                self.enroll(window, key, state)
            yield key, emitted

    def _go_back(self, window: Window, time: int) -> None:
        """Move the start of silences that began after this tick to its time: the clock was set back."""
        assert self.heap is not None
        if time < self.last_tick:
            for key in self.names():
                state = self.find(key)
                assert state is not None
                if state.silent is not None and state.silent > time:
                    state.silent = time
                    self.changed[key] = None
                    self.enroll(window, key, state)
        self.last_tick = time

    def _due(self, time: int) -> Iterator[bytes]:
        """Remove from the heap, and yield, the keys that a tick must check."""
        assert self.heap is not None
        while self.heap and self.heap[0][0] <= time:
            due, key = heappop(self.heap)
            state = self.find(key)
            if state is not None and state.queued == due:
                state.queued = None
                yield key

    def entries(self, window: Window, port: int, keys: Iterable[bytes], entry_bytes: int) -> Iterator[bytes]:
        """Yield frames with the states of some keys. Keys whose state in the log must be removed are absent."""
        names: list[bytes] = []
        values: list[bytes] = []
        size = 0
        for key in keys:
            state = self.live.get(key)
            data = self.stored.get(key, b"") if state is None else self.dump(window, key, state)
            if not data and key not in self.sizes:
                continue
            self._measure(key, data)
            if len(data) > state_piece.PIECE_BYTES:
                yield from state_piece.write_pieces(data, key=key, port=port, encoding=WINDOWED)
                continue
            cost = len(key) + len(data) + HEAD.size
            if names and size + cost > entry_bytes:
                yield _entry(port, names, values)
                names, values, size = [], [], 0
            names.append(key)
            values.append(data)
            size += cost
        if names:
            yield _entry(port, names, values)

    def count(self) -> int:
        """Return the number of keys that have a state."""
        return len(self.live) + len(self.stored)

    def names(self) -> list[bytes]:
        """Return all keys that have a state."""
        return [*self.live, *self.stored]


def _entry(port: int, keys: list[bytes], values: list[bytes]) -> bytes:
    absent = [position for position, value in enumerate(values) if not value]
    return encode_frame(values, port=port, encoding=WINDOWED, keys=keys, key_indexes=range(len(keys)), absent=absent)
