"""What programs of Wallaroo's releases rely on: one object for `to`, any key with a hash, messages without keys."""

import dataclasses
import enum
import json
import threading
from fractions import Fraction
from typing import Any

import pytest
from call_case import attempt
from hypothesis import given, settings
from hypothesis import strategies as st

import wallaroo
from wallaroo.check.object_state import kept_by
from wallaroo.component.application import Step
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.emit.program import load
from wallaroo.message.frame import read_frame
from wallaroo.message.key import bucket_of, key_bytes, key_json
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage

MODULE_COUNT = 0


class Named:
    def name(self) -> str:
        return "object"


class Pure(Named):
    def __init__(self) -> None:
        self.factor, self.names = 2, ("a", frozenset("b"))

    def compute(self, data: Any) -> Any:
        data.price = 3  # the message's, not the object's
        return data * self.factor


class Counts(Named):
    def __init__(self) -> None:
        self.count = 0

    def compute(self, data: Any) -> Any:
        self.count += 1
        return data, self.count


class Remembers(Named):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def compute_multi(self, data: Any) -> Any:
        self.seen.append(data)
        return list(self.seen)


class Counted(Counts):
    def compute(self, data: Any) -> Any:
        return super().compute(data)


class OfClass(Named):
    count = 0

    def compute(self, data: Any) -> Any:
        OfClass.count += 1
        return data


class OfBoth(Counts):
    total = 0

    def compute(self, data: Any) -> Any:
        self.count += 1
        OfBoth.total += 1
        return data


class OfModule(Named):
    def compute(self, data: Any) -> Any:
        global MODULE_COUNT
        MODULE_COUNT += 1
        return data


class Locked(Counts):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


@pytest.mark.parametrize(
    ("cls", "where", "is_inside"),
    [
        (Pure, "", True),
        (Counts, "self.count", True),
        (Counted, "self.count", True),
        (Remembers, "self.seen", True),
        (OfClass, "OfClass.count", False),
        (OfBoth, "OfBoth.total", False),
        (OfModule, "global MODULE_COUNT", False),
        (Locked, "self.count", False),
    ],
)
def test_what_an_object_keeps_is_found(cls: Any, where: str, is_inside: bool) -> None:
    kept = kept_by(cls())
    assert (kept.where, kept.is_inside) == (where, is_inside)


def kinds(app: Any) -> list[tuple[str, str]]:
    return [(step.kind, step.state.name if step.state else "") for step in app.nodes() if isinstance(step, Step)]


def test_an_object_of_to_that_keeps_something_is_one_state(kit: Any) -> None:
    app = kit.build(lambda ab: ab.to(Pure), lambda ab: ab.to(Counts), lambda ab: ab.to(Counts()))
    assert kinds(app) == [
        ("computation", ""),
        ("state_computation", "object of object"),
        ("state_computation", "object of object 2"),
    ]
    assert kinds(kit.build(lambda ab: ab.to_parallel(Counts))) == [("computation", "")]
    assert kinds(kit.build(lambda ab: ab.to(Remembers))) == [("state_computation_multi", "object of object")]


@pytest.mark.parametrize("cls", [OfClass, OfModule, Locked])
def test_an_object_that_cannot_be_saved_is_refused_with_the_remedy(kit: Any, cls: Any) -> None:
    with pytest.raises(DiagnosticError) as caught:
        kit.build(lambda ab: ab.to(cls))
    assert [each.code for each in caught.value.diagnostics] == ["T234"]
    assert "to_stateful(computation, StateClass" in str(caught.value)


def test_an_object_as_state_is_refused_beside_the_module_s_own_serialize(tmp_path: Any) -> None:
    (tmp_path / "own.py").write_text(
        "import wallaroo\n"
        "def serialize(data): return data.encode()\n"
        "def deserialize(data): return data.decode()\n"
        "class Count:\n"
        "    def __init__(self): self.n = 0\n"
        "    def name(self): return 'count'\n"
        "    def compute(self, data):\n"
        "        self.n += 1\n"
        "        return data\n"
        "@wallaroo.decoder(header_length=4, length_fmt='>I')\n"
        "def decode(data): return data.decode()\n"
        "@wallaroo.encoder\n"
        "def encode(data): return data\n"
        "def application_setup(args):\n"
        "    ab = wallaroo.ApplicationBuilder('own')\n"
        "    ab.new_pipeline('p', wallaroo.TCPSourceConfig('127.0.0.1', '7010', decode)).to(Count)\n"
        "    return ab.to_sink(wallaroo.TCPSinkConfig('127.0.0.1', '7002', encode)).build()\n"
    )
    with pytest.raises(DiagnosticError, match="the module's own serialize does not know"):
        load(str(tmp_path / "own.py"), [])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.text(alphabet="abc", min_size=1), max_size=6), max_size=5))
def test_one_object_sees_every_message_once_and_in_order(kit: Any, calls: list[list[str]]) -> None:
    """Each inner list is a micro-batch; the state is read from its log in between, as after a restart."""
    app = kit.build(lambda ab: ab.to(Counts))
    first = Stage(app, kit.stage_of(app, "0/sources/0"))
    log: list[bytes] = []
    got: list[bytes] = []
    for number, texts in enumerate(calls):
        outputs = first.run(number, kit.wire([text.encode() for text in texts])) if texts else []
        frames = [output.frame for output in outputs if output.bucket >= 0]
        if not frames:
            continue
        second = Stage(app, kit.stage_of(app, "0/steps/0"))
        state = BucketState(second.codec)
        state.read(log)
        result = attempt(second, pb.Bucket(index=0, bucket=0), [b"".join(frames)], state)
        assert result is not None
        log += [entry for change in result.changes for entry in change.entries]
        got += [value for _, value in kit.sunk(result.outputs)]
    sent = [text for texts in calls for text in texts]
    assert got == [repr((text, at)).encode() for at, text in enumerate(sent, 1)]


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any


leaves = st.one_of(
    st.text(max_size=3), st.integers(), st.booleans(), st.floats(allow_nan=False), st.sampled_from(Colour),
    st.integers(0, 3).map(float), st.integers(0, 3),
)  # fmt: skip
keys = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(st.none() | inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Point, inner, inner),
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(keys, keys)
def test_keys_are_equal_exactly_when_their_bytes_are(one: Any, other: Any) -> None:
    assert (key_bytes(one) == key_bytes(other)) == (one == other)
    assert 0 <= bucket_of(key_bytes(one), 7) < 7
    assert json.dumps(key_json(one))


@pytest.mark.parametrize("value", [None, [], {}, object(), Fraction(1, 2), float("nan"), (1, [])])
def test_what_cannot_be_compared_is_no_key(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        key_bytes(value)


def test_tuples_are_keys_of_a_partition(kit: Any) -> None:
    class Pair:
        def partition(self, data: Any) -> Any:
            return data[0], len(data)

    @wallaroo.state_computation("keep")
    def keep(data: Any, state: Any) -> Any:
        return data, True

    app = kit.build(lambda ab: ab.to_state_partition(keep, dict, "s", Pair, [("a", 1), ("a", 2.0)]))
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, kit.wire([b"ab", b"ac", b"a", b"b"]))
    frames = [read_frame(output.frame) for output in outputs if output.bucket >= 0]
    assert {key for frame in frames for key in frame.keys} == {
        key_bytes(each) for each in [("a", 2), ("a", 1), ("b", 1)]
    }


@settings(deadline=None)
@given(st.integers(1, 10**12))
def test_times_of_windows_are_rounded_up_and_told(length: int) -> None:
    windows: Any
    if length % 1_000_000:
        with pytest.warns(UserWarning, match="times are in milliseconds here"):
            windows = wallaroo.range_windows(length)
    else:
        windows = wallaroo.range_windows(length)
    assert repr(windows) == f"range_windows({-(-length // 1_000_000) * 1_000_000})"
