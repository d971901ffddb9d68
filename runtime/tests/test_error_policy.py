"""Which dead letters stop the query."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.outbox.letter_tail import letters_of
from wallaroo_runtime.topology.error_policy import ErrorPolicy, stop_at_dead_letter, stopped_by
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.worker import Component

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
POLICIES = json.loads((VECTORS / "policies.json").read_bytes())


@pytest.mark.parametrize(
    ("application", "option", "default"),
    [
        ("", "", False),
        ("fail", "", True),
        ("dead_letter", "", False),
        ("fail", "dead_letter", False),
        ("dead_letter", "fail", True),
        ("", "fail", True),
    ],
)
def test_what_goes_before_what(application: str, option: str, default: bool) -> None:
    document: dict[str, Any] = copy.deepcopy(POLICIES)
    del document["on_error"]
    if application:
        document["on_error"] = application
    policy = ErrorPolicy.of(load_document(document), option)
    assert policy.stops_at("0/steps/0") is default
    assert policy.stops_at("0/steps/1"), "it says so itself"
    assert not policy.stops_at("0/sources/0")
    assert not policy.stops_at("0/sinks/0")
    assert policy.may_fail


@pytest.mark.parametrize(
    ("language", "symbol", "expected"),
    [
        ("python", "app.split", 'give "split" on_error "dead_letter"'),
        ("go", "main.split", 'give "split" .OnError("dead_letter")'),
        ("go", "goka.(*group).stateful-fm", 'give the processor of "split" the option goka.WithDeadLetters()'),
    ],
)
def test_the_remedy_is_of_the_language_and_api_of_the_part(language: str, symbol: str, expected: str) -> None:
    topology = load_document(copy.deepcopy(POLICIES))
    component = Component("0/steps/1", symbol)
    workers = tuple(replace(each, language=language, components=(component,)) for each in topology.workers)
    policy = ErrorPolicy.of(replace(topology, workers=workers))
    letter = pb.DeadLetter(code="C501", error="no", path="0/steps/1", step="split")
    assert stopped_by(letter, policy).diagnostics[0].fix == f"correct the user code and run again, or {expected}"
    large = pb.DeadLetter(code="R606", path="0/sources/0", step="split", origin=pb.Origin(topic="words"))
    assert stopped_by(large, policy).diagnostics[0].fix == f"send the record again in parts, and {expected}"
    letter.path = "0/steps/0"
    assert stopped_by(letter, policy).diagnostics[0].fix.endswith("or run with --on-error dead_letter")


@pytest.mark.parametrize(
    ("origin", "remedy"),
    [
        (None, "make the message smaller at its origin, or delete it there, and run again, or"),
        (pb.Origin(topic="clicks"), "send the record again in parts, and"),  # a journal has its letter already
    ],
)
def test_the_remedy_of_a_message_that_is_too_large(origin: pb.Origin | None, remedy: str) -> None:
    letter = pb.DeadLetter(code="R606", path="0/sources/0", origin=origin)
    fix = stopped_by(letter, ErrorPolicy(fails=True)).diagnostics[0].fix
    assert fix == f"{remedy} run with --on-error dead_letter"


def test_a_stop_shows_the_message() -> None:
    policy = ErrorPolicy.of(load_document(copy.deepcopy(POLICIES)))
    letter = pb.DeadLetter(code="C501", error="no", key=b"ann", has_key=True, preview="Order(\n'ann')")
    assert "C501 no (key 'ann'; Order( 'ann'))" in stopped_by(letter, policy).diagnostics[0].message
    letter.key, letter.preview = b"\xff" * 300, "x" * 200
    assert len(stopped_by(letter, policy).diagnostics[0].message) < 350


def test_a_topology_that_says_nothing_never_stops() -> None:
    policy = ErrorPolicy.of(load_document(json.loads((VECTORS / "reverse.json").read_bytes())))
    assert not policy.may_fail


def test_the_first_letter_that_stops() -> None:
    letters = [("0/sources/0", 3), ("0/steps/1", 9), ("0/steps/1", 7), ("0/sinks/0", 1)]
    values = [
        pb.DeadLetter(code="C501", path=path, sequence=at, error=f"{at} of {path}").SerializeToString()
        for path, at in letters
    ]
    pieces = [encode_frame(half, port=DEAD_LETTER_PORT) for half in (values[:2], values[2:])]
    policy = ErrorPolicy(parts={"0/steps/1": True})
    with pytest.raises(RunError, match="C501 7 of 0/steps/1"):
        stop_at_dead_letter(letters_of(pieces), policy)
    with pytest.raises(RunError, match="C501 1 of 0/sinks/0"):
        stop_at_dead_letter(letters_of(pieces[1:]), ErrorPolicy(fails=True))
    stop_at_dead_letter(letters_of(pieces), ErrorPolicy())
