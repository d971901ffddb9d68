"""Branches whose steps change their messages: no branch sees what another changes; fixed messages are shared."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

import wallaroo
from wallaroo import Pipeline, TCPSinkConfig, TCPSourceConfig, testing
from wallaroo.message.serialization import Serializer
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.chain import ChainWriter, Link
from wallaroo.worker.value.value import ValueCodec


class Plain:
    def __init__(self, log: list[Any]) -> None:
        self.log = log


@dataclass(frozen=True)
class Holder:
    log: list[Any]


@dataclass(frozen=True)
class Fixed:
    name: str
    at: tuple[int, int]


def local(log: list[Any]) -> Any:
    class Local:
        """A class that pickle refuses."""

        def __init__(self) -> None:
            self.log = log

    return Local()


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "dict": lambda log: {"log": log},
    "list": lambda log: log,
    "tuple": lambda log: ("log", log),
    "object": Plain,
    "frozen with a list": Holder,
    "local class": local,
}


def log_of(message: Any) -> list[Any]:
    """Return the part of a message that the steps change."""
    if isinstance(message, list):
        return message
    log: list[Any] = message["log"] if isinstance(message, dict) else getattr(message, "log", None) or message[1]
    return log


@dataclass
class Node:
    """A node of a drawn graph; its kind is "map", "multi", "key", "state", "output" or "sink"."""

    kind: str
    children: "list[Node]" = field(default_factory=list)
    number: int = 0


class Total:
    def __init__(self) -> None:
        self.total = 0


sinks = some.builds(Node, some.just("sink"))
nodes = some.recursive(
    sinks,
    lambda inner: some.builds(
        Node, some.sampled_from(("map", "multi", "key", "state", "output")), some.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=7,
)


def numbered(tops: list[Node]) -> list[Node]:
    """Number the nodes of a graph in place, and return them."""
    waiting = list(tops)
    for number, node in enumerate(waiting):
        node.number = number
        waiting += node.children
    return waiting


def change(node: Node, message: Any) -> Any:
    log_of(message).append(node.number)
    return message


def expected(node: Node, message: Any, results: dict[int, list[Any]], totals: dict[int, int]) -> None:
    """Run a node on a copy of a message: a plain reference."""
    message = change(node, copy.deepcopy(message))
    if node.kind == "sink":
        results[node.number].append(log_of(message))
        return
    if node.kind == "state":
        totals[node.number] = totals.get(node.number, 0) + len(log_of(message))
    for _ in range(2 if node.kind == "multi" else 1):
        for child in node.children:
            expected(child, message, results, totals)


def declare(pipeline: Pipeline, node: Node, ends: dict[int, Any]) -> None:
    """Declare a node and the nodes after it."""
    name = f"step {node.number}"
    if node.kind == "sink":
        encode = wallaroo.line_encoder(lambda message: json.dumps(log_of(change(node, message))))
        ends[node.number] = pipeline.to_sink(TCPSinkConfig("127.0.0.1", str(7100 + node.number), encode))
        return
    if node.kind == "map":
        pipeline = pipeline.to(wallaroo.computation(name)(lambda message: change(node, message)))
    elif node.kind == "output":

        def put(message: Any) -> Any:
            return wallaroo.output("other", change(node, message))

        pipeline = pipeline.to(wallaroo.computation(name, outputs=("other",))(put)).output("other")
    elif node.kind == "multi":

        def several(message: Any) -> list[Any]:
            return [change(node, message), copy.deepcopy(message)]

        pipeline = pipeline.to(wallaroo.computation_multi(name)(several))
    else:

        @wallaroo.key_extractor
        def key(message: Any) -> str:
            if node.kind == "key":
                change(node, message)
            return "k"

        def total(message: Any, state: Total) -> Any:
            state.total += len(log_of(change(node, message)))
            return message

        pipeline = pipeline.key_by(key)
        if node.kind == "state":
            pipeline = pipeline.to(wallaroo.state_computation(name, state=Total)(total))
    for child in node.children:
        declare(pipeline, child, ends)


TWO = [Node("map", [Node("sink")]), Node("sink"), Node("state", [Node("sink"), Node("sink")])]


@example(TWO, "dict")
@given(some.lists(nodes, min_size=1, max_size=3), some.sampled_from(sorted(FORMS)))
def test_no_branch_sees_the_changes_of_another(tops: list[Node], form: str) -> None:
    every = numbered(tops)
    if form == "local class" and any(node.kind == "state" for node in every):
        form = "object"  # a state step cannot get what pickle refuses
    results: dict[int, list[Any]] = {node.number: [] for node in every if node.kind == "sink"}
    totals: dict[int, int] = {}
    decode = wallaroo.line_decoder(lambda payload: FORMS[form]([payload.decode()]))

    def setup(args: list[str]) -> Any:
        ends: dict[int, Any] = {}
        raw = wallaroo.source("in", TCPSourceConfig("127.0.0.1", "7010", decode))
        for top in tops:
            declare(raw, top, ends)
        setup.sinks = list(ends)  # type: ignore[attr-defined]
        return wallaroo.build_application("Branches", *ends.values())

    for payload in ("a", "b", "c"):
        for top in tops:
            expected(top, FORMS[form]([payload]), results, totals)
    with testing.run(setup) as app:
        app.send([b"a", b"b", b"c"])
        assert not app.dead_letters
        for at, number in enumerate(setup.sinks):  # type: ignore[attr-defined]
            assert sorted(map(json.loads, app.output(str(at)))) == sorted(results[number])
        for number, total in totals.items():
            assert app.state(f"step {number}", "k").total == total


codec = ValueCodec(Serializer())


@pytest.mark.parametrize("message", ["a", b"a", 7, None, (1, ("a", 2.5)), Fixed("a", (1, 2)), frozenset({1})])
def test_a_fixed_message_is_not_copied(message: Any) -> None:
    assert codec.copy(message) is message


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_mutable_message_is_copied(form: str) -> None:
    message = FORMS[form](["a"])
    assert log_of(codec.copy(message)) == ["a"]
    assert log_of(codec.copy(message)) is not log_of(message)


def test_a_message_without_a_copy_is_shared() -> None:
    message = {"log": (each for each in "a")}
    assert codec.copy(message) is message


def test_a_chain_makes_no_copy() -> None:
    kinds = (pb.NODE_KIND_SOURCE, pb.NODE_KIND_COMPUTATION, pb.NODE_KIND_SINK)
    links = [Link(kind, readers=[at + 1], input_count=min(at, 1)) for at, kind in enumerate(kinds)]
    links[-1].readers = []
    assert "copied" not in ChainWriter(links, is_custom=False).source()
    links[0].readers.append(3)
    links.append(Link(pb.NODE_KIND_SINK, input_count=1))
    assert ChainWriter(links, is_custom=False).source().count("copied") == 1
