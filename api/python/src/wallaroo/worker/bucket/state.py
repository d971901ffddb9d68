"""The states of a bucket in the worker's memory, and how they are read from and written to a state log."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from wallaroo.message import state_piece
from wallaroo.message.frame import FrameError, encode_frame
from wallaroo.worker.bucket.calendar import WINDOWED, Calendar
from wallaroo.worker.bucket.cell import TIMED, UNREAD, Cell, CellTable, NotRead, TimedCell, read_timed
from wallaroo.worker.value.value import NotSerializableError, StateReadError, StateTooLargeError, ValueCodec

ENTRY_BYTES = 1024 * 1024
MAX_STATE_BYTES = 256 * 1024 * 1024  # limit of one state; a call needs a few times as much memory for its copies
# Objects take more memory than their pickles; dicts of short texts take 4 to 6 times as much (measured).
LIVE_FACTOR = 5
KEY_BYTES = 200
ENTRY_COST = 16  # bytes of a state in an entry in addition to its key and its data


class Version(NamedTuple):
    """The version of a bucket's states. A copy in memory with another version is stale. (0, 0) has no states."""

    counter: int
    nonce: int


class BucketKey(NamedTuple):
    """Names a bucket of a query's stage. The worker keeps its copy of the bucket's states under this name."""

    application: str
    query: str
    stage: str
    bucket: int


@dataclass(slots=True)
class BucketState:
    """The worker's copy of the states of one bucket.

    Attributes:
        max_bytes: Largest size of a state in bytes. A state that is larger already may not grow.
        tables: The states of each state name, by the port of its log frames; a `Calendar` for a window step.
        watch: Called with "read" or "wrote", the port of a table, and a key, before the key's state is read or written;
            None if the call is not watched.
    """

    codec: ValueCodec
    max_bytes: int = MAX_STATE_BYTES
    tables: dict[int, CellTable] = field(default_factory=dict)
    watch: Callable[[str, int, bytes], None] | None = None
    _log: state_piece.Joiner = field(default_factory=state_piece.Joiner)

    def table(self, port: int) -> CellTable:
        """Return the table of a state. Its frames in the state log have the port `port`."""
        table = self.tables.get(port)
        if table is None:
            table = self.tables[port] = CellTable(self.codec)
        return table

    def calendar(self, port: int) -> Calendar:
        """Return the calendar of a window step. Its frames in the state log have the port `port`."""
        if port not in self.tables:
            self.tables[port] = Calendar(self.codec)
        calendar = self.tables[port]
        assert isinstance(calendar, Calendar)
        return calendar

    def read(self, entries: Iterable[bytes]) -> None:
        """Read the entries of a state log, in order.

        Raises:
            FrameError: An entry is damaged.
        """
        for entry in entries:
            frame = self._log.take(entry)
            if frame is None:
                continue
            if frame.header.count and not frame.keys:
                msg = "an entry of a state log has no keys"
                raise FrameError(msg)
            encoding, port = frame.header.encoding, frame.header.port
            table = self.calendar(port) if encoding == WINDOWED else self.table(port)
            cell: Cell
            keys = [frame.keys[index] for index in frame.key_indexes]
            absent = set(frame.absent)
            for position, (key, data) in enumerate(zip(keys, frame.values(), strict=True)):
                table.remove(key)
                if position in absent:
                    continue
                if encoding == TIMED:
                    cell, own, data = read_timed(data)  # noqa: PLW2901
                else:
                    cell, own = Cell(UNREAD), encoding
                # States with an encoding that this program no longer writes are converted.
                cell.data = data if own == table.encoding else self._rewritten(key, data, self.codec.loader(own))
                cell.size = len(cell.data)
                table[key] = cell
                table.written += cell.size
                table.unread += cell.size

    def end_log(self) -> None:
        """Check, after all entries of the log were read, that its last state is complete.

        Raises:
            FrameError: The last state of the log is incomplete.
        """
        self._log.end()

    def _rewritten(self, key: bytes, data: bytes, load: Callable[[bytes], Any]) -> bytes:
        try:
            return self.codec.dump(load(data))
        except BaseException as err:
            raise StateReadError(key, err) from err

    def cell(self, table: CellTable, key: bytes, build: Callable[[], Any]) -> Cell:
        """Return a key's state as an object: read from its bytes if it was not read yet, or new if the key has none.

        Raises:
            StateReadError: The state from the log cannot be read.
        """
        cell = table.get(key)
        if cell is None:
            cell = table.add(key, build())
        elif cell.live is UNREAD:
            if self.watch is not None:
                self.watch("read", next(port for port, each in self.tables.items() if each is table), key)
            table.wake(key, cell)
        return cell

    def entries(self, states: Mapping[int, Mapping[bytes, Cell]]) -> Iterator[bytes]:
        """Serialize some states, and yield the entries of the state log that contain them.

        Raises:
            NotSerializableError: A state cannot be written.
        """
        for port, changed in sorted(states.items()):
            table = self.table(port)
            keys, cells, values = list(changed), list(changed.values()), self._dumped(port, changed)
            sizes = list(map(len, values))
            if max(sizes, default=0) > self.max_bytes:
                self._check_sizes(port, keys, cells, sizes)
            table.written += sum(sizes) - sum([cell.size for cell in cells if cell.size > 0])
            for cell, size in zip(cells, sizes, strict=True):
                cell.size = size
            encoding = table.encoding
            if table.timing is not None:
                pairs = zip(cells, values, strict=True)
                values = [cell.head(encoding) + data for cell, data in pairs if isinstance(cell, TimedCell)]
                sizes, encoding = list(map(len, values)), TIMED
            costs = [size + len(key) + ENTRY_COST for size, key in zip(sizes, keys, strict=True)]
            ends = list(accumulate(costs, initial=0))
            start = 0
            while start < len(keys):
                # As many states as fit, but at least one.
                end = max(start + 1, bisect_right(ends, ends[start] + ENTRY_BYTES - 64) - 1)
                if sizes[start] > state_piece.PIECE_BYTES:
                    end = start + 1
                    yield from state_piece.write_pieces(values[start], key=keys[start], port=port, encoding=encoding)
                else:
                    yield _entry(port, keys[start:end], values[start:end], encoding)
                start = end

    def absent_entry(self, port: int, keys: Sequence[bytes]) -> bytes:
        """Return an entry of the state log that removes the states of these keys."""
        empty, places = [b""] * len(keys), range(len(keys))
        return encode_frame(
            empty, port=port, encoding=self.table(port).encoding, keys=keys, key_indexes=places, absent=places
        )

    def _check_sizes(self, port: int, keys: list[bytes], cells: list[Cell], sizes: list[int]) -> None:
        for key, cell, size in zip(keys, cells, sizes, strict=True):
            if size > max(self.max_bytes, cell.size):
                raise StateTooLargeError(cell.live, size, self.max_bytes, port, key)

    def _dumped(self, port: int, changed: Mapping[bytes, Cell]) -> list[bytes]:
        if self.watch is not None:
            return self._dumped_one_by_one(port, changed)
        cells, table = changed.values(), self.table(port)
        lives = [cell.live for cell in cells]
        try:
            if NotRead not in set(map(type, lives)):
                return table.encode_all(lives)
            return [cell.data if cell.live is UNREAD else table.encode(cell.live) for cell in cells]
        except BaseException:
            return self._dumped_one_by_one(port, changed)

    def _dumped_one_by_one(self, port: int, changed: Mapping[bytes, Cell]) -> list[bytes]:
        """Serialize the states one by one, to find one that cannot be written, or during which the process ends."""
        values: list[bytes] = []
        for key, cell in changed.items():
            if self.watch is not None:
                self.watch("wrote", port, key)
            try:
                values.append(cell.data if cell.live is UNREAD else self.table(port).encode(cell.live))
            except BaseException as err:
                raise NotSerializableError(cell.live, err, port, key) from err
        return values

    def write(self, table: CellTable, cell: Cell) -> bytes:
        """Serialize a state.

        Raises:
            NotSerializableError: The state cannot be written, or is too large.
        """
        try:
            data = table.encode(cell.live)
        except BaseException as err:
            raise NotSerializableError(cell.live, err) from err
        if len(data) > max(self.max_bytes, cell.size):
            raise StateTooLargeError(cell.live, len(data), self.max_bytes)
        return data

    def values(self, read: Callable[[int, bytes], Any]) -> Iterator[tuple[int, bytes, Any]]:
        """Yield port, key and state of each key of the log.

        Args:
            read: Returns a state from its encoding and bytes.

        Raises:
            StateReadError: A state cannot be read.
        """
        for port, table in self.tables.items():
            for key, cell in table.items():
                try:
                    value = read(table.encoding, cell.data)
                except BaseException as err:
                    raise StateReadError(key, err) from err
                yield port, key, value

    def count(self) -> int:
        """Return the number of keys that have a state."""
        return sum(map(len, self.tables.values()))

    def cost(self) -> int:
        """Return the approximate number of bytes that these states take in memory."""
        unread = sum(table.unread for table in self.tables.values())
        written = sum(table.written for table in self.tables.values())
        return unread + (written - unread) * LIVE_FACTOR + KEY_BYTES * self.count()


def _entry(port: int, keys: list[bytes], states: list[bytes], encoding: int) -> bytes:
    return encode_frame(states, port=port, encoding=encoding, keys=keys, key_indexes=range(len(keys)))
