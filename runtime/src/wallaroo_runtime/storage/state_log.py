"""Reads and writes the log of a bucket (the changes of its states), without the user's code.

An entry of the log is a frame (section 2 of `topology-schema/SPECIFICATION.md`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from wallaroo.message.frame import Frame, FrameError, encode_frame
from wallaroo.message.state_piece import Joiner
from wallaroo_runtime.errors import RunError

T = TypeVar("T")
StateKey = tuple[int, bytes]  # a state's port, and a key
StateValue = tuple[int, bytes]  # the encoding and the bytes of a state


def latest_states(entries: Iterable[bytes]) -> dict[StateKey, StateValue]:
    """Return the states after all entries of a log; keys whose state was deleted are left out.

    Raises:
        RunError: R664 if an entry is damaged.
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
    """Yield the frames of a log, with the pieces of a large state joined into one frame."""
    joiner = Joiner()
    try:
        for entry in entries:
            if (frame := joiner.take(entry)) is not None:
                yield frame
        joiner.end()
    except FrameError as error:
        raise RunError.of("R664", reason=f"the log of a bucket is damaged: {error}") from error


def entries_of(states: Mapping[StateKey, StateValue]) -> Iterator[bytes]:
    """Return these states as entries of a state log, one for each port and encoding. They must fit into one frame."""
    groups: dict[tuple[int, int], list[tuple[bytes, bytes]]] = defaultdict(list)
    for (port, key), (encoding, value) in states.items():
        groups[port, encoding].append((key, value))
    for (port, encoding), pairs in groups.items():
        keys, values = zip(*pairs, strict=True)
        yield encode_frame(values, port=port, encoding=encoding, keys=keys, key_indexes=range(len(keys)))


def grouped(items: Iterable[T], size_of: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Yield the items in groups of at most `limit` bytes, or of one item.

    Example:
        >>> [*grouped([b"ab", b"c", b"de"], len, 3)]
        [[b'ab', b'c'], [b'de']]
    """
    group: list[T] = []
    size = 0
    for item in items:
        if group and size + size_of(item) > limit:
            yield group
            group, size = [], 0
        group.append(item)
        size += size_of(item)
    if group:
        yield group
