"""The declaration of visits: what the document says, and what is refused."""

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from call_case import attempt, second_try
from hypothesis import given
from hypothesis import strategies as st

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.emit.topology import topology
from wallaroo.message.frame import FrameError, encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.message_order import Same
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import PICKLED


@wallaroo.partition
def first(data: str) -> str:
    return data[0]


class Plain:
    """A state computation without visits."""

    def name(self) -> str:
        return "plain"

    def compute(self, data: str, state: list[str]) -> Any:
        return None, True


class Visited(Plain):
    """One with visits."""

    visits: Any = ("show", "reset")

    def visit(self, name: str, metadata: bytes, key: Any, state: list[str]) -> Any:
        return None, True


class Unvisited(Plain):
    visits = ("show",)


class WrongArity(Visited):
    def visit(self, name: str, key: Any) -> Any:  # type: ignore[override]
        return None, True


def steps(kit: Any, computation: Any) -> list[dict[str, Any]]:
    app = kit.build(lambda builder: builder.to_state_partition(computation, list, "log", first))
    return list(topology(app, "no_such", "app.py", [])["pipelines"][0]["steps"])


def codes(kit: Any, computation: Any) -> list[str]:
    with pytest.raises(DiagnosticError) as caught:
        steps(kit, computation)
    return [each.code for each in caught.value.diagnostics]


def test_visits_are_in_the_document(kit: Any) -> None:
    (step,) = steps(kit, Visited)
    assert step["visits"] == ["show", "reset"]
    assert list(step).index("visits") < list(step).index("codec")
    (plain,) = steps(kit, Plain)
    assert "visits" not in plain


def test_visitors_of_a_decorated_function(kit: Any) -> None:
    @wallaroo.state_computation("count")
    def count(data: str, state: list[str]) -> Any:
        return None, True

    @count.visitor("show")
    def show(metadata: bytes, key: Any, state: list[str]) -> Any:
        return (metadata, key, state), False

    assert show(b"m", "k", []) == ((b"m", "k", []), False)  # still a function
    assert count.visit("show", b"m", "k", []) == ((b"m", "k", []), False)
    assert steps(kit, count)[0]["visits"] == ["show"]
    for name, function in (("show", show), (7, show), ("other", lambda key: None)):
        with pytest.raises(wallaroo.WallarooParameterError) as caught:
            count.visitor(name)(function)
        assert caught.value.diagnostics[0].code == ("T202" if name == "other" else "T207")


@pytest.mark.parametrize(
    ("names", "expected"), [(("a", "a"), ["T207"]), (("a\n",), ["T210"]), (("a\u0301",), ["T210"]), (("",), ["T210"])]
)
def test_names_of_visits(kit: Any, names: tuple[str, ...], expected: list[str]) -> None:
    class Named(Visited):
        visits = names

    assert codes(kit, Named) == expected


def test_a_visitor_is_a_method(kit: Any) -> None:
    assert codes(kit, Unvisited) == ["T223"]
    assert codes(kit, WrongArity) == ["T202"]


def test_a_frame_that_is_no_visit_is_damage(kit: Any) -> None:
    app = kit.build(lambda builder: builder.to_state_partition(Visited, list, "log", first))
    stage = Stage(app, kit.stage_of(app, "0/steps/0"))
    for values, encoding in (([], 0), ([b"", b""], 0), ([b"\xff\xff"], 0)):
        frame = encode_frame(values, port=65533, encoding=encoding)
        with pytest.raises(FrameError):
            attempt(stage, pb.Bucket(index=0), [frame], BucketState(stage.codec))


def test_a_stage_that_names_another_visit_is_refused(kit: Any) -> None:
    app = kit.build(lambda builder: builder.to_state_partition(Visited, list, "log", first))
    description = kit.stage_of(app, "0/steps/0")
    description.nodes[0].visits.append("show")
    Stage(app, description)
    description.nodes[0].visits.append("other")
    with pytest.raises(DiagnosticError, match="W403"):
        Stage(app, description)


def test_a_visit_saves_the_state_of_a_step_with_times(kit: Any) -> None:
    class Timed(Visited):
        ttl = timedelta(hours=1)

        def compute(self, data: str, state: list[str]) -> Any:
            state.append(data)
            return None, False

        def visit(self, name: str, metadata: bytes, key: Any, state: list[str]) -> Any:
            state.append(name)
            return None, False

    app = kit.build(lambda builder: builder.to_state_partition(Timed, list, "log", first))
    description = kit.stage_of(app, "0/steps/0")
    description.nodes[0].visits.append("show")
    description.nodes[0].ttl_ms = 3_600_000
    stage = Stage(app, description)
    port, message = description.nodes[0].port, stage.codec.dump("a")
    frames = [encode_frame([message], port=port, encoding=PICKLED, keys=[b"a"], key_indexes=[0])]
    frames.append(encode_frame([pb.Visit(id=1, name="show").SerializeToString()], port=65533, sequence=1))
    state = BucketState(stage.codec)
    for frame in frames:  # each in a call of its own, after which the state is read from its log
        result = attempt(stage, pb.Bucket(index=0, wants_snapshot=True), [frame], state)
        assert result is not None
        state = BucketState(stage.codec)
        state.read(entry for change in result.changes for entry in change.entries)
    (cell,) = state.table(port).values()
    assert stage.codec.load(cell.data) == ["a", "show"]
    for run in (attempt, second_try):
        log = [entry for change in result.changes for entry in change.entries]
        state = BucketState(stage.codec)
        state.read(log)
        again = run(stage, pb.Bucket(index=0), [frames[1]], state)
        assert again is not None
        assert [entry for change in again.changes for entry in change.entries], run


@given(st.integers(0, 9), st.slices(9), st.integers(-12, 12))
def test_equal_elements_are_like_a_list(count: int, part: slice, position: int) -> None:
    same, each = Same(7, count), [7] * count
    assert ([*same], len(same), [*same[part]]) == (each, count, each[part])
    for one in (same, each):
        with nullcontext() if -count <= position < count else pytest.raises(IndexError):
            assert one[position] == 7
