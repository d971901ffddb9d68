"""The place of what cannot be pickled, drawn: it is found in whatever holds it."""

import pickle
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wallaroo.worker.value.unpicklable import MAX_DEPTH, reason_of


class Plain:
    def __init__(self, part: Any) -> None:
        self.first, self.part = 1, part


class Slotted:
    __slots__ = ("part",)

    def __init__(self, part: Any) -> None:
        self.part = part


class Chosen(Plain):
    """Leaves a field out, as programs do."""

    def __init__(self, part: Any) -> None:
        super().__init__(part)
        self.guard = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"first": 1, "part": self.part}


@dataclass(frozen=True, slots=True)
class Record:
    part: Any


class Listed(list[Any]):
    pass


HOLDERS: list[tuple[str, Callable[[Any], Any]]] = [
    (".part", Plain), (".part", Slotted), (".part", Chosen), (".part", Record), ("[1]", lambda part: [0, part]),
    ("[1]", lambda part: (0, part)), ("['a']", lambda part: {"b": 1, "a": part}), ("[0]", lambda part: deque([part])),
    ("[0]", lambda part: Listed([part])), ("[(1, 2)]", lambda part: {(1, 2): part}),
]  # fmt: skip


@given(st.lists(st.sampled_from(HOLDERS), max_size=MAX_DEPTH), st.sampled_from([threading.Lock, lambda: lambda: 0]))
def test_the_place_is_found_in_whatever_holds_it(holders: list[Any], make: Callable[[], Any]) -> None:
    value, path = make(), ""
    for step, hold in holders:
        value, path = hold(value), step + path
    try:
        pickle.dumps(value, 5)
    except Exception as error:
        place = f"; at {type(value).__name__}{path}" if holders else ""
        assert reason_of(value, error).endswith(f"{error}{place}")
        assert reason_of(value, ValueError("another one")) == "ValueError: another one"


def test_an_object_that_is_its_own_part_ends_the_search() -> None:
    value: list[Any] = []
    value += [value, threading.Lock()]
    assert reason_of(value, TypeError("cannot pickle '_thread.lock' object")).endswith("; at list" + "[0]" * MAX_DEPTH)
