"""Finds or makes the states for the keys of messages. Messages whose key cannot have a state become dead letters."""

from types import NoneType
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.message.key import readable
from wallaroo.worker.bucket.cell import UNREAD, Cell, NotRead
from wallaroo.worker.bucket.failed_message import refuse
from wallaroo.worker.bucket.message_order import Messages
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import StateReadError

NOTHING = Cell(None)  # cell for a key that has no message, or cannot have a state


def states_of(stage: Stage, part: Messages, state: BucketState) -> tuple[list[Cell], list[Any]]:
    """Return the cells for the keys of `part`, as `cells_of` does, and the states in them as objects."""
    cells: list[Any] = list(map(part.table.get, part.keys))
    # The loop of `cells_of` is needed for the first message of a key. For a million known keys it would be too slow.
    if part.entry.closed_keys is None and NoneType not in set(map(type, cells)):
        states = [cell.live for cell in cells]
        if NotRead not in set(map(type, states)):
            return cells, states
    cells = cells_of(stage, part, state)
    return cells, [cell.live for cell in cells]


def cells_of(stage: Stage, part: Messages, state: BucketState) -> list[Cell]:
    """Return a cell with a state for each key of `part`. Messages whose key cannot have a state become dead letters.

    Keys without messages, and keys that cannot have a state, have the cell `NOTHING`.
    """
    refused: dict[int, BaseException | Diagnostic] = {}
    used = set(part.indexes)
    cells: list[Any] = list(map(part.table.get, part.keys))
    for index, cell in enumerate(cells):
        if cell is not None and cell.live is not UNREAD and part.entry.closed_keys is None:
            continue
        if index not in used:
            cells[index] = NOTHING
            continue
        key = part.keys[index]
        finding = _unknown(part, key)
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
        refuse(stage, part, refused)
    return cells


def _unknown(part: Messages, key: bytes) -> Diagnostic | None:
    closed = part.entry.closed_keys
    if closed is None or key in closed:
        return None
    return Diagnostic.of("C502", step=part.entry.step.name, key=shown(readable(key)), state=part.entry.state.name)
