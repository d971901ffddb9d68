"""Live state: one copy per bucket, under the version that it belongs to, within a bound of bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Any, NamedTuple

from wallaroo.frame import FrameError, encode_frame, read_frame
from wallaroo.location import one_line
from wallaroo.worker.value import ValueCodec

ENTRY_BYTES = 1024 * 1024
# Objects take more memory than their pickles; measured on dicts of short texts it is 4 to 6 times as much.
LIVE_FACTOR = 5
KEY_BYTES = 200
ENTRY_COST = 16  # what a state costs in an entry beside its key and its bytes


class Version(NamedTuple):
    """The version of a bucket's state: (0, 0) is the empty state."""

    counter: int
    nonce: int


class BucketKey(NamedTuple):
    """Whose state a copy is."""

    application: str
    query: str
    stage: str
    bucket: int


StateKey = tuple[int, bytes]  # port of the state's log frames, key


class NotSerializableError(Exception):
    """A state cannot be written. Code: C504."""

    def __init__(self, state: Any, cause: BaseException) -> None:
        super().__init__(one_line(cause))
        self.type_name = type(state).__name__


class StateReadError(Exception):
    """A state of the log cannot be read. Code: C507."""

    def __init__(self, key: bytes, cause: BaseException) -> None:
        super().__init__(one_line(cause))
        self.key = key


@dataclass(slots=True)
class BucketState:
    """The states of one bucket.

    Attributes:
        codec: Writes and reads states.
        live: States that user code has seen, by state port and key.
        stored: Serialized states that no message has asked for since they were read.
        sizes: Serialized size of each state when it was last written or read.
    """

    codec: ValueCodec
    live: dict[StateKey, Any] = field(default_factory=dict)
    stored: dict[StateKey, bytes] = field(default_factory=dict)
    sizes: dict[StateKey, int] = field(default_factory=dict)

    def read(self, entries: Iterable[bytes]) -> None:
        """Take over the entries of a state log, in order.

        Raises:
            FrameError: An entry is damaged.
        """
        for entry in entries:
            frame = read_frame(entry)
            if frame.header.count and not frame.keys:
                msg = "an entry of a state log has no keys"
                raise FrameError(msg)
            port, encoding = frame.header.port, frame.header.encoding
            keys = [frame.keys[index] for index in frame.key_indexes]
            absent = set(frame.absent)
            load = self.codec.loader(encoding)
            for position, (key, data) in enumerate(zip(keys, frame.values(), strict=True)):
                at = (port, key)
                if position in absent:
                    self.stored.pop(at, None)
                    self.sizes.pop(at, None)
                    continue
                # States of an encoding that this program no longer writes are written anew.
                self.stored[at] = data if encoding == self.codec.encoding else self._rewritten(at, data, load)
                self.sizes[at] = len(data)

    def _rewritten(self, at: StateKey, data: bytes, load: Callable[[bytes], Any]) -> bytes:
        try:
            return self.codec.dump(load(data))
        except BaseException as err:
            raise StateReadError(at[1], err) from err

    def get(self, at: StateKey, build: Callable[[], Any]) -> Any:
        """Return a key's state: live, read from its serialized form, or new.

        Raises:
            StateReadError: It is in the log and cannot be read.
        """
        if at in self.live:
            return self.live[at]
        data = self.stored.get(at)
        state = build() if data is None else self.load(at, data)
        self.live[at] = state
        self.stored.pop(at, None)
        return state

    def entries(self, keys: Iterable[StateKey]) -> Iterator[bytes]:
        """Yield frames of the serialized states of some keys."""
        by_port: dict[int, list[StateKey]] = {}
        for at in keys:
            by_port.setdefault(at[0], []).append(at)
        for port in sorted(by_port):
            wanted = by_port[port]
            states = self._dumped(wanted)
            sizes = list(map(len, states))
            self.sizes.update(zip(wanted, sizes, strict=True))
            names = [key for _, key in wanted]
            start = size = 0
            for end, cost in enumerate(map(add, sizes, map(len, names))):
                if end > start and size + cost + ENTRY_COST > ENTRY_BYTES - 64:
                    yield _entry(port, names[start:end], states[start:end], self.codec)
                    start, size = end, 0
                size += cost + ENTRY_COST
            if states:
                yield _entry(port, names[start:], states[start:], self.codec)

    def _dumped(self, keys: Sequence[StateKey]) -> list[bytes]:
        """Return the serialized states of some keys.

        Raises:
            NotSerializableError: One cannot be written.
        """
        stored, live, dump = self.stored, self.live, self.codec.dump
        states: list[bytes] = []
        keep = states.append
        try:
            for at in keys:
                keep(stored[at] if at in stored else dump(live[at]))
        except BaseException as err:
            raise NotSerializableError(live[at], err) from err
        return states

    def write(self, state: Any) -> bytes:
        """Return a state's bytes.

        Raises:
            NotSerializableError: It cannot be written.
        """
        try:
            return self.codec.dump(state)
        except BaseException as err:
            raise NotSerializableError(state, err) from err

    def load(self, at: StateKey, data: bytes) -> Any:
        """Return the state of its bytes.

        Raises:
            StateReadError: They cannot be read.
        """
        try:
            return self.codec.load(data)
        except BaseException as err:
            raise StateReadError(at[1], err) from err

    def known_keys(self) -> list[StateKey]:
        """Return all keys that have a state."""
        return [*self.live, *self.stored]

    def cost(self) -> int:
        """Return about how many bytes of memory the copy takes."""
        stored = sum(map(len, self.stored.values()))
        written = sum(self.sizes.values())
        return stored + max(0, written - stored) * LIVE_FACTOR + KEY_BYTES * (len(self.live) + len(self.stored))


class StateCache:
    """Keeps copies of buckets, the least recently used ones leaving first.

    A copy is taken out while a call works on it, so that no two calls ever change one.

    Args:
        limit_bytes: How much memory all copies together may take, about.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit, self._total = limit_bytes, 0
        self._copies: OrderedDict[BucketKey, tuple[Version, BucketState, int]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: BucketKey, version: Version) -> BucketState | None:
        """Take out the copy of exactly this version; a copy of another version is dropped."""
        with self._lock:
            found = self._copies.pop(key, None)
            if found is None:
                return None
            self._total -= found[2]
            return found[1] if found[0] == version else None

    def file(self, key: BucketKey, version: Version, state: BucketState) -> int:
        """Keep a copy under its new version; returns the bytes that it takes."""
        cost = state.cost()
        with self._lock:
            old = self._copies.pop(key, None)
            self._total += cost - (old[2] if old else 0)
            self._copies[key] = (version, state, cost)
            while self._total > self._limit and self._copies:
                self._total -= self._copies.popitem(last=False)[1][2]
            return cost


def _entry(port: int, keys: list[bytes], states: list[bytes], codec: ValueCodec) -> bytes:
    return encode_frame(states, port=port, encoding=codec.encoding, keys=keys, key_indexes=range(len(keys)))
