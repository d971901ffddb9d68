"""States as JSON for people."""

import enum
import json
from collections import deque, namedtuple
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.goka.state import GroupState
from wallaroo.worker.value.show import shown_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
Point = namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = 1


@dataclass
class Account:
    owner: str
    amounts: list[float] = field(default_factory=list)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a = 1


class Rude:
    def __init__(self) -> None:
        self.value = 1

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        msg = "no"
        raise ValueError(msg)


@given(JSON)
def test_what_is_json_stays_as_it_is(value: Any) -> None:
    text = json.dumps(value).encode()
    has_half = b"\\ud" in text
    assert has_half or json.loads(shown_json(value)) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Account("Ann", [1.5]), {"owner": "Ann", "amounts": [1.5]}),
        (Slotted(), {"a": 1}),
        (Point(1, {2}), {"x": 1, "y": [2]}),
        (Color.RED, "RED"),
        ({3, 1, "b", "a"}, [1, 3, "a", "b"]),
        (deque([1, (2,)]), [1, [2]]),
        ({1: "a", (2, 3): "b"}, {"1": "a", "[2, 3]": "b"}),
        ({1: "a", "1": "b"}, [[1, "a"], ["1", "b"]]),
        (b"text", "text"),
        (bytearray(b"\x00\xff"), "0x00ff"),
        (float("nan"), "nan"),
        (datetime(2026, 1, 2, tzinfo=timezone.utc), "2026-01-02T00:00:00+00:00"),
        (timedelta(seconds=90), "0:01:30"),
        (1 + 2j, "(1+2j)"),
        ([1 << 20_000], [hex(1 << 20_000)]),
        (Rude(), "<Rude: ValueError>"),
        ("half \ud800", "half \\ud800"),
        (GroupState(b"7", {"users": b"Ann"}), {"joined": {"users": "Ann"}, "value": "7"}),
    ],
)
def test_other_values_are_told(value: Any, shown: Any) -> None:
    assert json.loads(shown_json(value)) == shown


def test_a_value_that_refers_to_itself_comes_to_an_end() -> None:
    loop: list[Any] = []
    loop.extend([loop, loop])
    text = shown_json(loop)
    assert b'"..."' in text
    assert len(text) < 1_000_000
