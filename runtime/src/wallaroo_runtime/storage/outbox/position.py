"""The position up to which a sink has delivered its output: the file `position-<port>` in the outbox."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wallaroo_runtime.durable.file import replace_file, sync_file
from wallaroo_runtime.durable.record import pack_line, read_line
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.outbox.live_state import read_last
from wallaroo_runtime.storage.outbox.log import read_base


@dataclass(frozen=True, slots=True)
class SinkPosition:
    """The place up to which a sink has delivered its output, in the outbox's files and its live log.

    Attributes:
        record: Number of the next record.
        file: Index of the next file among the record's files; files of other ports count, too.
        byte: Number of delivered bytes of that file's values; always whole messages.
        messages: Number of messages that were ever delivered to this sink, including messages that it refused.
        total_bytes: Number of bytes of these messages.
        sender: Permanent name by which a committing sink knows this output; empty if the sink takes no transactions.
        base: Number of bytes that were delivered before the output had that name; the sink counts only later bytes.
        live: Offset of the next entry of the live log; entries of other ports count, too.
        live_byte: Number of delivered bytes of that entry's values; always whole messages.
        live_messages: Number of messages that came from the live log, a part of `messages`.
        refused: Number of messages that became dead letters because the sink never takes them, a part of `messages`.
    """

    record: int = 0
    file: int = 0
    byte: int = 0
    messages: int = 0
    total_bytes: int = 0
    sender: str = ""
    base: int = 0
    live: int = 0
    live_byte: int = 0
    live_messages: int = 0
    refused: int = 0

    @property
    def _place(self) -> tuple[int, ...]:
        # Entries of the live log are delivered before the files of the next record.
        return (self.record, self.live, self.live_byte, self.file, self.byte)

    @property
    def live_needed(self) -> int:
        """The offset up to which the live log must be safe on disk before this position may be recorded."""
        return self.live + bool(self.live_byte)

    def is_after(self, other: "SinkPosition") -> bool:
        """Return whether this position comes after another position of the same sink."""
        return self._place > other._place


def read_position(directory: Path, port: int) -> SinkPosition:
    """Return the recorded position of the sink with this port, or the beginning if none was recorded.

    Raises:
        RunError: R698 if the file is damaged.
    """
    return _read(directory / f"position-{port}") or SinkPosition()


def begin_position(directory: Path, port: int) -> None:
    """Record the beginning as the position of the sink with this port, before its first output is published."""
    path = directory / f"position-{port}"
    if not path.exists():
        new = directory / f".position-{port}.begin"
        replace_file(new, _line(SinkPosition()))
        with suppress(FileExistsError):  # meanwhile the egress has recorded a position
            path.hardlink_to(new)
        new.unlink()
        sync_file(path)


def other_positions(directory: Path, ports: Collection[int]) -> list[SinkPosition]:
    """Return the recorded positions of sinks that the application no longer has: all but those of `ports`.

    No port is used again.

    Raises:
        RunError: R698 if a file is damaged.
    """
    recorded = {int(path.name.rpartition("-")[2]) for path in directory.glob("position-*")}
    return [read_position(directory, port) for port in sorted(recorded.difference(ports))]


def _read(path: Path) -> SinkPosition | None:
    try:
        value = read_line(path)
    except ValueError as error:
        raise RunError.of("R698", what=path, reason="it does not fit its checksum") from error
    return None if value is None else SinkPosition(**value)


def write_position(directory: Path, port: int, position: SinkPosition, *, durable: bool) -> None:
    """Record the position of the sink with this port; `durable` makes it survive a loss of power."""
    replace_file(directory / f"position-{port}", _line(position), durable=durable)


def _line(position: SinkPosition) -> bytes:
    values = {name: getattr(position, name) for name in SinkPosition.__slots__}
    rare = ("live", "refused", "base")
    return pack_line({name: value for name, value in values.items() if value or not name.startswith(rare)})


def undelivered(directory: Path, ports: Collection[int]) -> int:
    """Return the number of messages that wait for the sinks of these ports.

    Raises:
        RunError: R698 if the outbox is damaged.
    """
    published = read_base(directory).messages + read_last(directory).state.messages
    return sum(published[port] - read_position(directory, port).messages for port in ports)
