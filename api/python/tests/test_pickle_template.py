"""Pickles of instances: what `wallaroo.worker.value.pickle_template` writes reads like what `pickle.dumps` writes."""

import abc
import collections
import copyreg
import dataclasses
import datetime
import pickle
import subprocess
import sys
from typing import Any, Generic, TypeVar

import pytest

from wallaroo.worker.value.pickle_template import MAX_CLASSES, dump, dump_all

T = TypeVar("T")


class Plain:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Plain({vars(self)})"


class Child(Plain):
    pass


class Abstract(abc.ABC, Generic[T]):
    def __init__(self) -> None:
        self.items = [1, "two", 3.0, None, b"four"]


@dataclasses.dataclass
class Data:
    name: str
    count: int = 0


class Outer:
    class Inner(Plain):
        """Is found under a name with a dot, and pickled as usual."""


class Slotted:
    __slots__ = ("a", "b")


class HalfSlotted(Slotted):
    pass


class Reduced(Plain):
    def __reduce__(self) -> Any:
        return Plain, (), {"reduced": 1}


class WithState(Plain):
    def __getstate__(self) -> Any:
        return {"from": "getstate"}


class SetsState(Plain):
    def __setstate__(self, state: Any) -> None:
        self.set = state


class NewArguments:
    def __new__(cls, one: int) -> "NewArguments":
        self = super().__new__(cls)
        self.one = one
        return self

    def __getnewargs__(self) -> Any:
        return (self.one,)


class Answers:
    def __getattr__(self, name: str) -> Any:
        if name == "__getstate__" and sys.version_info < (3, 11):
            return lambda: {"answered": True}
        raise AttributeError(name)


class Dispatched(Plain):
    pass


class ListKind(list):  # type: ignore[type-arg]
    pass


class HiddenFields:
    @property
    def __dict__(self) -> Any:
        return {"hidden": 1}


copyreg.pickle(Dispatched, lambda value: (Plain, (), {"dispatched": 1}))


def filled(value: Any, **fields: Any) -> Any:
    for name, field in fields.items():
        setattr(value, name, field)
    return value


VALUES = [
    Plain(), Plain(value=1), Plain(a=1, b="text", c=b"bytes", d=1.5, e=None, f=True, g=-(10**30)),
    Plain(items=[1, [2, {"three": (4, 5)}]], when=datetime.datetime(2020, 1, 1), deep=Child(of=Data("a", 2))),
    Plain(name="Plain", other="wallaroo"), Plain(large="x" * 70_000, larger=[str(each) for each in range(30_000)]),
    Plain(**{"grüße": "ß", "no identifier": 1}), Child(value=1), Abstract(), Data("name"), Outer.Inner(value=1),
    filled(Slotted(), a=1, b=2), filled(HalfSlotted(), a=1, b=2, c=3), Reduced(a=1), WithState(a=1), SetsState(a=1),
    NewArguments(7), filled(Answers(), a=1), Dispatched(a=1), filled(ListKind([1, 2]), extra=3),
    collections.Counter("aab"), collections.defaultdict(int, a=1), collections.UserDict(a=1), ValueError("why"),
    7, "text", b"bytes", None, [Plain(a=1)], {"a": Plain(a=1)}, Plain, datetime.date(2020, 1, 1),
]  # fmt: skip


def parts(value: Any) -> Any:
    """Return class and content of an object, for classes that do not compare."""
    slots = {name: getattr(value, name) for name in ("a", "b") if hasattr(value, name)}
    fields = getattr(value, "__dict__", {}) if not isinstance(value, type) else {}
    content = repr(value) if isinstance(value, (list, dict, Exception)) else None
    return type(value), slots, repr(sorted(fields)), content


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_reads_like_an_ordinary_pickle(value: Any) -> None:
    expected = pickle.loads(pickle.dumps(value, 5))
    for data in (dump(value), *dump_all([value]), *dump_all([value, value])):
        for found in (pickle.loads(data), pickle._loads(data)):  # type: ignore[attr-defined]
            assert parts(found) == parts(expected)
            if type(value).__eq__ is not object.__eq__ and not isinstance(value, Exception):
                assert found == expected


def test_all_are_what_each_is() -> None:
    assert dump_all(VALUES) == [dump(value) for value in VALUES]
    alike = [Plain(value=number) for number in range(300)] + [Plain(name="Plain")]
    assert dump_all(alike) == [dump(value) for value in alike]
    assert dump_all([]) == []


def test_an_object_that_contains_itself_stays_one() -> None:
    value = Plain(value=1)
    value.me, value.children = value, [Child(parent=value)]
    for data in (dump(value), *dump_all([value, value])):
        found = pickle.loads(data)
        assert found.me is found
        assert found.children[0].parent is found


def test_parts_that_are_one_stay_one() -> None:
    shared = ["shared"]
    found = pickle.loads(dump(Plain(one=shared, two=shared, text="t", name="value", again="value")))
    assert found.one is found.two
    value = Plain()
    value.fields = vars(value)
    found = pickle.loads(dump(value))
    assert found.fields["fields"] is found.fields


def test_fields_share_their_names() -> None:
    """Names of fields are interned when they are read, so that a million states do not hold a million names."""
    one, two = (pickle.loads(dump(Plain(counter_of_something=number))) for number in (1, 2))
    assert next(iter(vars(one))) is next(iter(vars(two)))


def test_hidden_fields_are_read_as_pickle_reads_them() -> None:
    assert dump(HiddenFields()) == pickle.dumps(HiddenFields(), 5)


def test_what_cannot_be_pickled_says_so_as_pickle_does() -> None:
    class Local(Plain):
        pass

    for value in (Local(a=1), Plain(function=lambda: 0), Plain(deep=Local())):
        with pytest.raises(Exception) as expected:
            pickle.dumps(value, 5)
        for write in (dump, lambda value: dump_all([value])):
            with pytest.raises(type(expected.value)) as found:
                write(value)
            assert str(found.value) == str(expected.value)


def test_many_classes_are_forgotten_again() -> None:
    made = [type(f"Made{number}", (Plain,), {"__module__": __name__}) for number in range(MAX_CLASSES + 10)]
    for kind in made:
        globals()[kind.__name__] = kind
    for kind in made:
        assert type(pickle.loads(dump(kind(a=1)))) is kind
    for kind in made:
        del globals()[kind.__name__]


@pytest.mark.slow
def test_another_process_reads_it(tmp_path: Any) -> None:
    (tmp_path / "kind.py").write_text("class Kind:\n    pass\n")
    program = "import sys, kind; from wallaroo.worker.value.pickle_template import dump; k = kind.Kind(); k.a = 1; "
    write = f"{program}sys.stdout.buffer.write(dump(k))"
    data = subprocess.run([sys.executable, "-c", write], cwd=tmp_path, stdout=subprocess.PIPE, check=True).stdout
    read = "import sys, pickle; print(pickle.load(sys.stdin.buffer).a)"
    done = subprocess.run([sys.executable, "-c", read], cwd=tmp_path, input=data, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"1\n"
