"""How far a sink's peer has acknowledged: `position-<port>` in the outbox."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.durable.line import pack_line, unpack_line
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.outbox.log import LogReader


@dataclass(frozen=True, slots=True)
class Delivered:
    """A place between two messages of one sink.

    Attributes:
        record: Number of the record that is next.
        file: Index of the file among the record's files; those of other ports count too.
        byte: Bytes of values of that file that are delivered; always whole messages.
        messages: Number of messages that were delivered to this sink, ever.
        total_bytes: Their bytes.
        sender: Name that a committing sink knows this output by; empty: the sink takes no transactions.
    """

    record: int = 0
    file: int = 0
    byte: int = 0
    messages: int = 0
    total_bytes: int = 0
    sender: str = ""

    def is_after(self, other: "Delivered") -> bool:
        """Return whether this place comes after another one of the same sink."""
        return (self.record, self.file, self.byte) > (other.record, other.file, other.byte)


def read_position(directory: Path, port: int) -> Delivered:
    """Return the recorded position of a port; the beginning when nothing was recorded.

    Raises:
        RunError: R620.
    """
    return _read(directory / f"position-{port}") or Delivered()


def read_retained(directory: Path, port: int) -> Delivered | None:
    """Return the position from which on delivered files are kept to be sent once more; None: none are.

    Raises:
        RunError: R620.
    """
    return _read(directory / f"retained-{port}")


def write_retained(directory: Path, port: int, position: Delivered | None) -> None:
    """Record what `read_retained` returns."""
    path = directory / f"retained-{port}"
    if position is None:
        path.unlink(missing_ok=True)
    else:
        replace_file(path, _line(position), durable=True)


def begin_position(directory: Path, port: int) -> None:
    """Record the beginning for a port that nothing was published for yet: from now on a position must be there."""
    if not (directory / f"position-{port}").exists():
        write_position(directory, port, Delivered(), durable=True)


def forget_position(directory: Path, port: int) -> None:
    """Remove what is recorded of a port whose sink is gone."""
    for name in ("position", "retained", "sender", "open"):
        (directory / f"{name}-{port}").unlink(missing_ok=True)


def _read(path: Path) -> Delivered | None:
    try:
        line = path.read_bytes()
    except FileNotFoundError:
        return None
    value = unpack_line(line.rstrip(b"\n"))
    if value is None:
        raise RunError.of("R620", path=path.parent, reason=f"{path.name} does not fit its checksum")
    return Delivered(**value)


def write_position(directory: Path, port: int, position: Delivered, *, durable: bool) -> None:
    """Record the position of a port; `durable`: it survives a loss of power, too."""
    replace_file(directory / f"position-{port}", _line(position), durable=durable)


def _line(position: Delivered) -> bytes:
    return pack_line({name: getattr(position, name) for name in Delivered.__slots__})


def undelivered(directory: Path, ports: Collection[int]) -> int:
    """Return how many messages wait for these sinks.

    Raises:
        RunError: R620.
    """
    reader = LogReader(directory)
    for _ in reader.records():
        continue
    reader.close()
    # By then its base has counted every record.
    return sum(reader.base.messages[port] - read_position(directory, port).messages for port in ports)
