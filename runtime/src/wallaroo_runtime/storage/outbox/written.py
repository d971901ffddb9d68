"""The last micro-batch that sinks of Spark have got: `written.json` of a checkpoint."""

from dataclasses import asdict, dataclass
from pathlib import Path

from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.durable.line import pack_line, read_line
from wallaroo_runtime.errors import RunError


@dataclass(frozen=True, slots=True)
class Written:
    """The last micro-batch that was written.

    Attributes:
        query: Id of Spark's query; empty: there was none yet.
        batch: Its number; -1: there was none yet.
        refused: How many of its messages became dead letters, since their sink never takes them.
    """

    query: str = ""
    batch: int = -1
    refused: int = 0


def read_written(path: Path) -> Written:
    """Return the last micro-batch that was written.

    Raises:
        RunError: R698, the file is damaged.
    """
    try:
        value = read_line(path)
        if value is None:
            return Written()
        return Written(str(value["query"]), int(value["batch"]), int(value.get("refused", 0)))
    except (ValueError, KeyError, TypeError) as error:
        raise RunError.of("R698", what=path, reason=error) from error


def write_written(path: Path, written: Written) -> None:
    """Record what `read_written` returns; it survives a loss of power."""
    replace_file(path, pack_line(asdict(written)), durable=True)
