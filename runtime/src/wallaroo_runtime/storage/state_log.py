"""Reads the log of a bucket's states, without the code that made them."""

from collections.abc import Iterable, Iterator

from wallaroo.message.frame import Frame, FrameError
from wallaroo.message.state_piece import Joiner
from wallaroo_runtime.errors import RunError

StateKey = tuple[int, bytes]  # port of the state, key
StateValue = tuple[int, bytes]  # encoding, serialized state


def latest_states(entries: Iterable[bytes]) -> dict[StateKey, StateValue]:
    """Return what a log says at its end; keys without state are left out.

    Raises:
        RunError: R664, an entry is damaged.
    """
    states: dict[StateKey, StateValue] = {}
    for frame in _whole(entries):
        absent = set(frame.absent)
        for number, value in enumerate(frame.values()):
            at = frame.header.port, frame.keys[frame.key_indexes[number]]
            if number in absent:
                states.pop(at, None)
            else:
                states[at] = frame.header.encoding, value
    return states


def _whole(entries: Iterable[bytes]) -> Iterator[Frame]:
    """Yield the frames of a log, pieces of a state joined."""
    joiner = Joiner()
    try:
        for entry in entries:
            if (frame := joiner.take(entry)) is not None:
                yield frame
        joiner.end()
    except FrameError as error:
        raise RunError.of("R664", reason=f"the log of a bucket is damaged: {error}") from error
