"""Makes dead letters of messages of a bucket call."""

from collections.abc import Mapping, Sequence
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.message.key import readable
from wallaroo.message.timer import FIRST_MS, LAST_MS
from wallaroo.worker.bucket.message_order import Messages
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.letter_box import Unread
from wallaroo.worker.value.value import NotSerializableError


class UnsavedChangeError(Exception):
    """A computation changed the state, but returned `persist` False. Code: C510."""


def sort_out(stage: Stage, part: Messages, unread: Mapping[int, Unread]) -> None:
    """Make dead letters of messages that are skipped, unreadable, or have a wrong time. Leave the others in `part`."""
    kept = []
    path, step = part.entry.node.path, part.entry.step.name
    for position, ordinal in enumerate(part.ordinals):
        error, skip = unread.get(position), stage.skips.get(ordinal - 1)
        message, sequence = part.messages[position], part.sequences[position]
        key = part.keys[part.indexes[position]]
        if skip is not None and error is not None:
            stage.box.skip(skip, path, step, error.data, sequence, key=key, is_payload=True)
        elif skip is not None:
            stage.box.skip(skip, path, step, message, sequence, key=key)
        elif error is not None:
            stage.box.unread(error, path, step, sequence, key)
        elif part.entry.is_timed and not FIRST_MS <= part.times[position] <= LAST_MS:
            stage.box.put(wrong_time(step, key, part.times[position]), path, step, message, sequence, key=key)
        else:
            kept.append(position)
    part.keep(kept)


def refuse(stage: Stage, part: Messages, refused: dict[int, Any]) -> None:
    """Make dead letters of messages whose key cannot have a state. `refused` has the reason by index of the key."""
    kept = []
    box = stage.box
    for position, index in enumerate(part.indexes):
        if index not in refused:
            kept.append(position)
            continue
        message, sequence, key = part.messages[position], part.sequences[position], part.keys[index]
        if isinstance(refused[index], Diagnostic):
            box.put(refused[index], part.entry.node.path, part.entry.step.name, message, sequence, key=key)
        else:
            box.add(part.entry.node.path, part.entry.step.name, message, sequence, refused[index], key=key)
    part.keep(kept)


def bury(stage: Stage, part: Messages, key: bytes, failed: tuple[Any, int, int, BaseException]) -> None:
    """Make a dead letter of the message with which a step's loop has failed. `failed` has message and error."""
    message, _, sequence, error = failed
    box, path, name = stage.box, part.entry.node.path, part.entry.step.name
    if isinstance(error, UnsavedChangeError):
        finding = Diagnostic.of("C510", step=name, key=shown(readable(key)))
        box.put(finding, path, name, message, sequence, key=key, is_payload=part.is_visit)
    elif isinstance(error, NotSerializableError):
        finding = error.finding("C504", name, shown(readable(key)))
        box.put(finding, path, name, message, sequence, key=key, is_payload=part.is_visit)
    else:
        box.add(path, name, message, sequence, error, key=key, is_payload=part.is_visit)


def has_wrong_times(times: Sequence[int]) -> bool:
    """Return whether one of the times is before the year 1 or after the year 9999."""
    return bool(times) and not FIRST_MS <= min(times) <= max(times) <= LAST_MS


def wrong_time(step: str, key: bytes, time: int) -> Diagnostic:
    """Return C523 for an invalid time. A time that does not fit into 64 bits is shown as the nearest such number."""
    nearest = {(1 << 63) - 1: " or later", -(1 << 63): " or earlier"}
    return Diagnostic.of("C523", step=step, key=shown(readable(key)), time=f"{time}{nearest.get(time, '')}")
