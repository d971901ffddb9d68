"""The name by which a sink with transactions knows the output of a port: `sender-<port>` in the outbox."""

from pathlib import Path

from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.durable.line import pack_line, read_line
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.outbox.position import Delivered


def identity(directory: Path, port: int, position: Delivered, name: str) -> tuple[str, int]:
    """Return the name, and where offsets of messages begin: both stay.

    Args:
        directory: The outbox.
        port: The sink's port.
        position: As it is recorded.
        name: What an output without a name gets.

    Raises:
        RunError: R698, the file is missing or damaged; under another name nothing prepared would be committed.
    """
    path = directory / f"sender-{port}"
    try:
        found = read_line(path)
    except ValueError as error:
        raise _damaged(path, "does not fit its checksum") from error
    if found is None:
        if position.sender:
            raise _damaged(path, "is missing")
        found = {"name": name, "base": position.total_bytes}
        replace_file(path, pack_line(found), durable=True)
    if position.sender not in ("", found["name"]):
        raise _damaged(path, f"has {found['name']!r}; the position {position.sender!r}")
    return str(found["name"]), int(found["base"])


def _damaged(path: Path, reason: str) -> RunError:
    return RunError.of("R698", what=path, reason=f"it {reason}")
