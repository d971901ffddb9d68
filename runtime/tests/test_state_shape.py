"""States that another version of a program reads: what `diff` says before agrees with what reading them does."""

import json
import linecache
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from wallaroo.component.wrapped import StateBuilder
from wallaroo.emit.state_shape import state_shape
from wallaroo.message.serialization import Serializer
from wallaroo.worker.value.value import ValueCodec
from wallaroo_runtime.plan.shape import compare_shapes
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.worker import Component

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
NUMBERS = Path(__file__).parents[2] / "api" / "go" / "internal" / "codec" / "testdata" / "numbers.json"
BASE = load_document(json.loads((VALID / "word_count.json").read_bytes()))
MODULE = "drawn_states"
VALUES = {"int": 7, "float": 1.5, "str": "kept", "list": [1], "dict": {"a": 1}, "Part": None}
FIRST = {"int": "0", "float": "0.0", "str": "''", "list": "[]", "dict": "{}", "Part": "Part()"}
PLAIN = ("int", "float", "str")
STYLES = ("assigned", "annotated", "class values", "dataclass", "slots", "dataclass slots", "base", "helper")
NAMES = "abcdef"


@dataclass(frozen=True)
class Field:
    """A field of a drawn class: its name, its type, and whether the class has a value for it."""

    name: str
    kind: str
    has_value: bool = False


@dataclass(frozen=True)
class Version:
    """A drawn class of states; `part` are the fields of what a field of the type `Part` holds."""

    style: str
    fields: tuple[Field, ...]
    part: tuple[Field, ...]
    name: str = "Kept"

    def source(self) -> str:
        """Return the module."""
        part = _class("Part", "annotated", self.part)
        return f"from dataclasses import dataclass, field\n\n{part}\n{_class(self.name, self.style, self.fields)}"


def _class(name: str, style: str, fields: tuple[Field, ...]) -> str:
    lines = [f"{each.name} = {FIRST[each.kind]}" for each in fields]
    if style == "class values":
        values = [line for line, each in zip(lines, fields, strict=True) if each.kind in PLAIN]
        own = [f"self.{line}" for line, each in zip(lines, fields, strict=True) if each.kind not in PLAIN]
        return _written(f"class {name}:", values, own)
    if style.startswith("dataclass"):
        option = "(slots=True)" if style.endswith("slots") else ""
        typed = [
            f"{each.name}: {each.kind} = " + (FIRST[each.kind] if each.has_value and each.kind in PLAIN
            else f"field(default_factory=lambda: {FIRST[each.kind]})") for each in fields
        ]  # fmt: skip
        return _written(f"@dataclass{option}\nclass {name}:", typed, [])
    if style == "slots":
        return _written(
            f"class {name}:", [f"__slots__ = {tuple(each.name for each in fields)!r}"], [f"self.{x}" for x in lines]
        )
    if style == "base":
        half = len(lines) // 2
        base = _written(f"class {name}Base:", [], [f"self.{line}" for line in lines[:half]])
        own = ["super().__init__()", *(f"self.{line}" for line in lines[half:])]
        return f"{base}\n{_written(f'class {name}({name}Base):', [], own)}"
    if style == "helper":
        own = [f"self.{each.name} = first_{name}_{each.name}()" for each in fields]
        helpers = "".join(f"def first_{name}_{each.name}():\n    return {FIRST[each.kind]}\n" for each in fields)
        return helpers + _written(f"class {name}:", [], own)
    typed = [f"self.{each.name}: {each.kind} = {FIRST[each.kind]}" for each in fields]
    return _written(f"class {name}:", [], typed if style == "annotated" else [f"self.{line}" for line in lines])


def _written(head: str, own: list[str], constructor: list[str]) -> str:
    lines = [*own, "def __init__(self):", *(f"    {line}" for line in constructor)] if constructor else own
    return "\n".join([head, *(f"    {line}" for line in lines or ["pass"])]) + "\n"


def executed(text: str) -> Any:
    """Return the module of a source, in the place of the one before."""
    module = types.ModuleType(MODULE)
    module.__file__ = f"<{MODULE} {hash(text)}>"
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
    sys.modules[MODULE] = module
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


def shape_of(version: Version) -> tuple[Any, dict[str, str] | None]:
    """Return class and shape of a version."""
    found = getattr(executed(version.source()), version.name)
    return found, state_shape(found, Serializer(), lambda name: name == MODULE)


def written(version: Version) -> tuple[bytes, dict[str, str] | None]:
    """Return a state with values of its own, as a worker writes it, and the shape that its program has."""
    cls, shape = shape_of(version)
    state = cls()
    for each in version.fields:
        if each.kind == "Part":
            for inner in version.part:
                setattr(state.__getattribute__(each.name), inner.name, VALUES[inner.kind])
        else:
            setattr(state, each.name, VALUES[each.kind])
    return ValueCodec(Serializer()).dump(state), shape


def is_right(old: Version, new: Version, data: bytes) -> bool:
    """Say whether the new version reads a state of the old one, each field as that was, or as one that is new."""
    try:
        state = ValueCodec(Serializer()).load(data)
        own = _are_right(state, old.fields, new.fields)
        parts = [each.name for each in new.fields if each.kind == "Part"]
        return own and all(_are_right(getattr(state, name), old.part, new.part) for name in parts)
    except Exception:
        return False


def _are_right(state: Any, old: tuple[Field, ...], new: tuple[Field, ...]) -> bool:
    before = {each.name: each.kind for each in old}
    gone = {each.kind for each in old if each.name not in {other.name for other in new}}
    for each in new:
        value = getattr(state, each.name)
        if each.name not in before and each.kind in gone:
            return False  # another name of a field that is gone, whose value it does not have
        if each.kind != "Part" and each.name in before and value != VALUES[before[each.name]]:
            return False
        if each.kind != "Part" and not isinstance(value, (int, float) if each.kind == "float" else eval(each.kind)):
            return False
    return True


FIELDS = st.lists(
    st.builds(Field, st.sampled_from(NAMES), st.sampled_from(sorted(VALUES)), st.booleans()),
    min_size=1, max_size=4, unique_by=lambda each: each.name,
).map(tuple)  # fmt: skip
PARTS = st.lists(
    st.builds(Field, st.sampled_from("xyz"), st.sampled_from(PLAIN), st.booleans()),
    min_size=1, max_size=3, unique_by=lambda each: each.name,
).map(tuple)  # fmt: skip
VERSIONS = st.builds(Version, st.sampled_from(STYLES), FIELDS, PARTS)


@st.composite
def changed_fields(draw: st.DrawFn, fields: tuple[Field, ...], kinds: tuple[str, ...], names: str) -> tuple[Field, ...]:
    """Return fields of which one was added, removed, renamed, retyped or moved; or other ones."""
    found = list(fields)
    at = draw(st.integers(0, len(found) - 1))
    free = [name for name in names if name not in {each.name for each in found}]
    match draw(st.sampled_from(["same", "add", "remove", "rename", "retype", "move"])):
        case "add" if free:
            found.insert(at, Field(draw(st.sampled_from(free)), draw(st.sampled_from(kinds)), draw(st.booleans())))
        case "remove" if len(found) > 1:
            del found[at]
        case "rename" if free:
            found[at] = Field(draw(st.sampled_from(free)), found[at].kind, found[at].has_value)
        case "retype":
            found[at] = Field(found[at].name, draw(st.sampled_from(kinds)), found[at].has_value)
        case "move":
            found.append(found.pop(at))
    return tuple(found)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Version, Version]:
    """Return two versions of a class."""
    old = draw(VERSIONS)
    style = draw(st.one_of(st.just(old.style), st.sampled_from(STYLES)))
    fields = draw(changed_fields(old.fields, tuple(sorted(VALUES)), NAMES))
    part = draw(changed_fields(old.part, PLAIN, "xyz"))
    return old, Version(style, fields, part, draw(st.sampled_from(["Kept", "Kept", "Kept", "Other"])))


def verdict(old: Any, new: Any, *, is_other_code: bool = True, language: str = "python") -> str:
    """Return what `diff` says of two shapes of a state."""
    found = [with_shape(old, "a", language), with_shape(new, "b" if is_other_code else "a", language)]
    said = compare_shapes(*((each, next(each.state_steps())) for each in found))
    return "safe" if said is None else "breaks" if said.is_known else "unknown"


def with_shape(shape: Any, code: str, language: str = "python") -> Topology:
    """Return the word count, its state made of something else."""
    made = Component("0/steps/1/state", "Kept", shape=shape)
    return replace(BASE, workers=(replace(BASE.workers[0], language=language, code_hash=code, components=(made,)),))


def test_go_states_are_judged_as_gob_reads_them() -> None:
    """The table is what encoding/gob did with extremes of each number (shape_test.go)."""
    says = {"all": "safe", "some": "unknown", "none": "breaks"}
    rows = json.loads(NUMBERS.read_bytes())
    wrong = [row for row in rows if verdict({"N": row[0]}, {"N": row[1]}, language="go") != says[row[2]]]
    assert not wrong
    assert len({row[0] for row in rows}) == 4 * 14


@pytest.fixture(autouse=True)
def module() -> Iterator[None]:
    """Leave no drawn module."""
    yield
    sys.modules.pop(MODULE, None)


DRAWN = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@settings(DRAWN)
@given(pairs())
def test_what_is_safe_is_read_as_it_was_written(pair: tuple[Version, Version]) -> None:
    old, new = pair
    data, before = written(old)
    _, after = shape_of(new)
    said = verdict(before, after, is_other_code=old != new)
    if said == "safe":
        assert is_right(old, new, data), (before, after)
    if old == new:
        assert said == "safe"


@settings(DRAWN)
@given(VERSIONS, st.data())
def test_a_field_that_is_gone_or_has_a_value_of_its_class_goes_on(old: Version, data: st.DataObject) -> None:
    assume(old.style not in ("slots", "dataclass slots", "helper") and len(old.fields) > 1)
    fields = data.draw(st.sampled_from([old.fields[1:], old.fields[:-1]]))
    if data.draw(st.booleans()) and old.style == "dataclass":
        fields = (*old.fields, Field("new", "int", has_value=True))
    stored, before = written(old)
    new = Version(old.style, fields, old.part)
    _, after = shape_of(new)
    assert is_right(old, new, stored)
    # The new code may read what is gone by its name, and count from zero where the name is another.
    assert verdict(before, after) == ("unknown" if {*old.fields} - {*fields} else "safe")


OLD = """
import enum
from dataclasses import dataclass
from typing import NamedTuple


class Color(enum.Enum):
    RED = 1


class Place(NamedTuple):
    row: int
    column: int


@dataclass
class Item:
    name: str
    price: float = 0.0


class Kept:
    limit = 10

    def __init__(self, first=0):
        self.count = first
        self.items: "list[Item]" = []
        self.color, self.place = Color.RED, Place(1, 2)
        self.other = []
"""
EDITS = {
    "nothing but code": ("limit = 10", "limit = 20", "safe"),
    "a method": ("    limit = 10", "    limit = 10\n\n    def add(self):\n        self.count += 1", "safe"),
    "a class value more": ("limit = 10", "limit = 10\n    more = 0", "safe"),
    "a field more": ("self.other = []", "self.other = []\n        self.more = 0", "breaks"),
    "a field renamed": ("self.count = first", "self.total = first", "breaks"),
    "a default of the constructor": ("first=0", "first=''", "breaks"),
    "a field of what a list holds": ("name: str", "title: str", "breaks"),
    "another type of what a list holds": ("name: str", "name: int", "breaks"),
    "a wider number": ("price: float", "price: int", "unknown"),
    "set by name": ("self.count = first", "setattr(self, 'total', first)", "unknown"),
    "set in the dictionary": ("self.count = first", "self.__dict__.update(total=first)", "unknown"),
    "one more set by name": (
        "self.count = first",
        "self.count = first\n        vars(self)['total'] = first",
        "unknown",
    ),
    "a value less": ("RED = 1", "RED = 2", "unknown"),
    "a named tuple turned round": ("row: int\n    column: int", "column: int\n    row: int", "unknown"),
    "a class renamed": ("Place", "Position", "unknown"),
    "the state's class renamed": ("class Kept", "class Other", "breaks"),
    "slots": ("    limit = 10", "    __slots__ = ('count', 'items', 'color', 'place', 'other')", "breaks"),
    "reads states itself": ("    limit = 10", "    def __setstate__(self, state):\n        pass", "unknown"),
    "reads a renamed field itself": (
        "self.count = first",
        "self.total = first\n\n    def __setstate__(self, state):\n        self.total = state['count']",
        "unknown",
    ),
    "reads a new field itself": (
        "self.count = first",
        "self.count = first\n        self.more = 0\n\n    def __setstate__(self, state):\n        self.more = 1",
        "unknown",
    ),
    "reads the states of another class itself": (
        "class Kept:\n",
        "class Other:\n    def __setstate__(self, state):\n        self.count = 0\n\n",
        "breaks",
    ),
    "a part reads itself": (
        "name: str",
        "title: str\n\n    def __setstate__(self, state):\n        self.title = state['name']\n",
        "unknown",
    ),
    "a call": ("self.count = first", "self.count = len(self.__class__.__name__)", "unknown"),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_a_change_of_a_program_means_for_its_states(name: str) -> None:
    before, after, expected = EDITS[name]
    assert before in OLD
    shapes = []
    for text in (OLD, OLD.replace(before, after)):
        module = executed(text)
        cls = getattr(module, "Other" if "class Other" in text else "Kept")
        shapes.append(state_shape(cls, Serializer(), lambda each: each == MODULE))
    assert None not in shapes
    assert verdict(*shapes) == expected, shapes


def test_what_is_no_class_says_what_it_makes() -> None:
    def annotated() -> dict[str, int]:
        return {}

    def plain():  # type: ignore[no-untyped-def]
        return [0]

    class Builder:
        def build(self):  # type: ignore[no-untyped-def]
            return {}

    makers = (annotated, plain, lambda: {}, Builder(), StateBuilder(dict), dict, Builder, print)
    found = [state_shape(each, Serializer(), lambda _: False) for each in makers]
    assert found[:1] == [{"": "dict[str, int]"}]
    assert found[1:] == [{"": "list"}, *[{"": "dict"}] * 5, None]
    assert state_shape(dict, Serializer(is_custom=True), lambda _: False) is None
