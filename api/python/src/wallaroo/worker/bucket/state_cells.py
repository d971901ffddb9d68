"""The states of a part's keys; messages of keys that cannot have one become dead letters."""

from types import NoneType
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.message.key import readable
from wallaroo.worker.bucket.cell import UNREAD, Cell, NotAsked
from wallaroo.worker.bucket.dead_letter import refuse
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.bucket.state_order import Messages
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import StateReadError

NOTHING = Cell(None)  # in the place of the state that a key does not have


def states_of(stage: Stage, part: Messages, state: BucketState) -> tuple[list[Cell], list[Any]]:
    """Return cells and live states of the keys; see `cells_of`."""
    cells: list[Any] = list(map(part.table.get, part.keys))
    # The loops of `cells_of` are for the first message of a key; with a million keys they would cost all others, too.
    if part.entry.closed_keys is None and NoneType not in set(map(type, cells)):
        states = [cell.live for cell in cells]
        if NotAsked not in set(map(type, states)):
            return cells, states
    cells = cells_of(stage, part, state)
    return cells, [cell.live for cell in cells]


def cells_of(stage: Stage, part: Messages, state: BucketState) -> list[Cell]:
    """Return the states of the keys; messages of keys that cannot have one become dead letters.

    The cell of a key without messages stands for nothing.
    """
    refused: dict[int, BaseException | Diagnostic] = {}
    used = set(part.indexes) if part.is_thinned else range(len(part.keys))
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
