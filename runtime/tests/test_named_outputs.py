"""Named outputs in memory: state computations and windows, keys and times, and another program's components."""

from typing import Any

import pytest

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.testing import run
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.library import join_libraries
from wallaroo_runtime.worker.capability import needed


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> tuple[str, int]:
    name, number = payload.decode().split(" ")
    return name, int(number)


@wallaroo.encoder
def encode(message: Any) -> str:
    return f"{message}\n"


@wallaroo.key_extractor
def first(message: tuple[str, int]) -> str:
    return message[0]


class Total:
    """The sum of a key."""

    sum = 0


@wallaroo.state_computation_multi("add", Total, outputs=("large", "unused"))
def add(message: tuple[str, int], total: Total) -> Any:
    total.sum += message[1]
    yield wallaroo.output("unused", message)
    if message[1] > 10:
        yield wallaroo.output("large", message)
    if message[1] == 13:
        msg = "no luck"
        raise ValueError(msg)
    yield message[0], total.sum


class Two(wallaroo.Aggregation):
    """The sum of two messages; those above 20 by an output."""

    outputs = ("large",)

    def initial_accumulator(self) -> list[int]:
        return []

    def update(self, input: tuple[str, int], accumulator: list[int]) -> None:
        accumulator.append(input[1])

    def combine(self, accumulator1: list[int], accumulator2: list[int]) -> list[int]:
        return accumulator1 + accumulator2

    def output(self, key: str, accumulator: list[int]) -> Any:
        made = (key, sum(accumulator))
        return wallaroo.output({True: "large", False: "lorge"}[made[1] < 99], made) if made[1] > 20 else made


def setup(args: list[str]) -> wallaroo.Application:
    added = wallaroo.source("in", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decode)).key_by(first).to(add)
    # The output has the key of the message: a state computation may follow.
    pairs = added.output("large").to(wallaroo.count_windows(2).over(Two))
    ends = [added, pairs, pairs.output("large")]
    ports = ("7002", "7003", "7004")
    sinks = [wallaroo.TCPSinkConfig("127.0.0.1", port, encode) for port in ports]
    return wallaroo.build_application("outputs", *(end.to_sink(to) for end, to in zip(ends, sinks, strict=True)))


def test_states_and_windows_emit_to_outputs_and_take_from_them() -> None:
    with run(setup, []) as app:
        app.send([b"a 1", b"a 11", b"b 12", b"a 13", b"a 2", b"b 3", b"b 60", b"b 70", b"b 80"])
        assert app.output("0") == [b"('a', 1)\n", b"('a', 12)\n", b"('b', 12)\n", b"('a', 14)\n", b"('b', 15)\n",
                                   b"('b', 75)\n", b"('b', 145)\n", b"('b', 225)\n"]  # fmt: skip
        assert (app.output("1"), app.output("2")) == ([], [b"('b', 72)\n"])
        failed, window = app.dead_letters
        assert (failed.step, failed.error) == ("add", "ValueError: no luck")
        assert (window.code, window.step) == ("C517", "Two")
        assert 'emitted to the output "lorge"; it declares "large"' in window.error
        app.advance(60)
        # After 5 s without a message 11 of key a is emitted, without 13, which failed after it was emitted.
        assert app.output("1") == [b"('a', 11)\n"]
        assert app.output("2") == [b"('b', 72)\n"]


def library(outputs: list[dict[str, str]]) -> dict[str, Any]:
    component = {"name": "check", "kind": "computation", "input": "json", "output": "json", "symbol": "check"}
    return {
        "library": {"worker": {"name": "main"}, "components": [component | ({"outputs": outputs} if outputs else {})]}
    }


def document() -> dict[str, Any]:
    host = {"worker": "other", "component": "check"}
    source = {"path": "0/sources/0", "codec": "json"}
    steps = [
        {"path": "0/steps/0", "name": "check", "kind": "computation", "inputs": ["0/sources/0"], "codec": "json"}
        | host,
        {"path": "0/steps/1", "name": "alerts", "kind": "output", "inputs": ["0/steps/0"], "codec": "int64"} | host,
    ]
    return {"workers": [], "pipelines": [{"sources": [source], "steps": steps}]}


def test_a_component_has_the_outputs_that_its_program_offers() -> None:
    found = document()
    join_libraries(found, {"other": ("book.py", library([{"name": "alerts", "codec": "int64"}]))})
    assert [each["path"] for each in found["workers"][0]["components"]] == ["0/steps/0"]
    for offered, text in (
        ([], 'has component "check" with no outputs; expected the outputs "alerts" in codec "int64"'),
        (
            [{"name": "alerts", "codec": "json"}],
            'the outputs "alerts" in codec "json"; expected the outputs "alerts" in',
        ),
    ):
        with pytest.raises(RunError, match="T260") as caught:
            join_libraries(document(), {"other": ("book.py", library(offered))})
        assert text in str(caught.value)


def test_an_offer_names_outputs_that_the_computation_declares() -> None:
    @wallaroo.computation("check", outputs=("alerts", "late"))
    def check(data: Any) -> Any:
        return data

    offered = wallaroo.offer(check, outputs={"late": "string"}).to_json()
    assert offered["outputs"] == [{"name": "alerts", "codec": "json"}, {"name": "late", "codec": "string"}]
    with pytest.raises(DiagnosticError, match="T273 component .check. has no output 'lata'; did you mean .late."):
        wallaroo.offer(check, outputs={"lata": "string"})


def test_a_stage_with_an_output_needs_a_worker_that_has_them() -> None:
    stage = pb.Stage(id="s0", nodes=[pb.Node(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION)])
    assert needed(stage) == set()
    stage.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_OUTPUT, inputs=["0/steps/0"], output="alerts")
    assert needed(stage) == {"outputs"}
