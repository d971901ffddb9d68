"""The last micro-batch that sinks of Spark have got: `written.json` of a checkpoint."""

from pathlib import Path

from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.durable.line import pack_line, read_line
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.outbox.log import Published


def read_written(path: Path) -> Published:
    """Return the last micro-batch that was written.

    Raises:
        RunError: R698, the file is damaged.
    """
    try:
        value = read_line(path)
        return Published() if value is None else Published(str(value["query"]), int(value["batch"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RunError.of("R698", what=path, reason=error) from error


def write_written(path: Path, query: str, batch: int) -> None:
    """Record what `read_written` returns; it survives a loss of power."""
    replace_file(path, pack_line({"query": query, "batch": batch}), durable=True)
