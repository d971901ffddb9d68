"""Named outputs: how they are declared, and what the worker does with what is emitted to them."""

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import wallaroo
from wallaroo import Pipeline, TCPSinkConfig, TCPSourceConfig, WallarooParameterError
from wallaroo.emit.topology import topology
from wallaroo.message.output import UndeclaredOutputError
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.flight import InFlight
from wallaroo.worker.stage.stage import Stage


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs: bytes) -> str:
    return bs.decode()


@wallaroo.encoder
def encode(data: Any) -> Any:
    return str(data)


@wallaroo.computation("check", outputs=("late", "alerts"))
def check(data: str) -> Any:
    name, _, rest = data.partition(" ")
    return wallaroo.output(name, rest or None) if name != "main" else rest


@wallaroo.computation_multi("each", outputs=["late", "alerts"])
def each(data: str) -> Any:
    for item in data.split(","):
        yield check(item) if item != "boom" else [][0]


@wallaroo.computation("pass")
def same(data: Any) -> Any:
    return data


@wallaroo.computation("stray")
def stray(data: str) -> Any:
    return wallaroo.output("alerts", data)


class Old:
    """A computation of Wallaroo 0.1."""

    outputs = ("alerts",)

    def name(self) -> str:
        return "old"

    def compute(self, data: str) -> Any:
        return wallaroo.output("alerts", data)


class Counts:
    """A class that has an attribute of the name that declares nothing."""

    outputs = 7

    def name(self) -> str:
        return "counts"

    def compute(self, data: str) -> str:
        return data


def source() -> Pipeline:
    return wallaroo.source("in", TCPSourceConfig("127.0.0.1", "7010", decode))


def sink(port: str = "7002") -> TCPSinkConfig:
    return TCPSinkConfig("127.0.0.1", port, encode)


def shape(application: wallaroo.Application) -> list[tuple[str, str, list[str]]]:
    """Return kind, name and inputs of each step, and the inputs of each sink."""
    (pipeline,) = topology(application, "no_such", "app.py", [])["pipelines"]
    steps = [(step["kind"], step["name"], step["inputs"]) for step in pipeline["steps"]]
    return steps + [("sink", str(each["port"]), each["inputs"]) for each in pipeline["sinks"]]


def faults(*pipelines: Pipeline) -> str:
    with pytest.raises(WallarooParameterError) as caught:
        wallaroo.build_application("outputs", *pipelines)
    return str(caught.value)


def test_outputs_stand_after_their_computation_whether_they_are_used_or_not() -> None:
    checked = source().to(check)
    alerts = checked.output("alerts").to(same)
    application = wallaroo.build_application("outputs", checked.to_sink(sink()), alerts.to_sink(sink("7003")))
    assert shape(application) == [
        ("computation", "check", ["0/sources/0"]),
        ("output", "late", ["0/steps/0"]),
        ("output", "alerts", ["0/steps/0"]),
        ("computation", "pass", ["0/steps/2"]),
        ("sink", "7002", ["0/steps/0"]),
        ("sink", "7003", ["0/steps/3"]),
    ]


def test_an_output_that_is_taken_twice_is_one_step() -> None:
    checked = source().to(check)
    twice = [checked.output("late").to_sink(sink(port)) for port in ("7002", "7003")]
    steps = shape(wallaroo.build_application("outputs", *twice))
    assert steps[3:] == [("sink", "7002", ["0/steps/1"]), ("sink", "7003", ["0/steps/1"])]
    assert 'T212 merge cannot follow "late"; both sides end in it' in faults(
        checked.output("late").merge(checked.output("late")).to_sink(sink())
    )


def test_the_builder_goes_on_from_an_output_after_the_end_of_the_pipeline() -> None:
    builder = wallaroo.ApplicationBuilder("outputs")
    builder.new_pipeline("in", TCPSourceConfig("127.0.0.1", "7010", decode)).to(check).to(same).to_sink(sink())
    builder.from_output("check", "alerts").to(Old).to_sink(sink("7003"))
    builder.from_output("old", "alerts").done()
    assert shape(builder.build()) == [
        ("computation", "check", ["0/sources/0"]),
        ("output", "late", ["0/steps/0"]),
        ("output", "alerts", ["0/steps/0"]),
        ("computation", "pass", ["0/steps/0"]),
        ("computation", "old", ["0/steps/2"]),
        ("output", "alerts", ["0/steps/4"]),
        ("sink", "7002", ["0/steps/3"]),
        ("sink", "7003", ["0/steps/4"]),
    ]


def test_an_attribute_that_is_no_list_of_names_declares_nothing() -> None:
    builder = wallaroo.ApplicationBuilder("outputs")
    builder.new_pipeline("in", TCPSourceConfig("127.0.0.1", "7010", decode)).to(Counts).to_sink(sink())
    assert shape(builder.build())[0] == ("computation", "counts", ["0/sources/0"])


def test_an_output_that_is_not_declared_is_found() -> None:
    checked = source().to(check)
    assert 'T273 step "check" has no output \'alert\'; did you mean "alerts"?' in faults(
        checked.output("alert").to_sink(sink())
    )
    assert "T273 source \"in\" has no output 'late'" in faults(source().output("late").to_sink(sink()))
    merged = checked.merge(source().to(same)).output("late")
    assert "T273 what is merged has no output 'late'" in faults(merged.to_sink(sink()))
    builder = wallaroo.ApplicationBuilder("outputs")
    builder.new_pipeline("in", TCPSourceConfig("127.0.0.1", "7010", decode)).to(check).to_sink(sink())
    builder.from_output("check", "alert").from_output("chek", "late")
    with pytest.raises(WallarooParameterError) as caught:
        builder.build()
    assert 'T273 step "check" has no output \'alert\'; did you mean "alerts"?' in str(caught.value)
    assert "T273 'chek', which is no step before it, has no output 'late'" in str(caught.value)


def test_names_of_outputs_are_checked() -> None:
    with pytest.raises(WallarooParameterError, match="T207 computation: parameter outputs is 'late'; expected names"):
        wallaroo.computation("check", outputs="late")(str.strip)
    twice = wallaroo.computation("check", outputs=("late", "late"))(str.strip)
    assert "T207 to: parameter outputs is ('late', 'late'); expected each name once" in faults(
        source().to(twice).to_sink(sink())
    )
    odd = wallaroo.computation("check", outputs=("a\nb",))(str.strip)
    assert "T210 output name 'a\\nb' is not usable" in faults(source().to(odd).to_sink(sink()))


def test_every_pipeline_of_an_application_has_an_end() -> None:
    checked = source().to(check)
    assert 'T204 pipeline "outputs" has no end after "late"' in faults(checked.to_sink(sink()), checked.output("late"))


def run(computation: Any, *payloads: str, kit: Any) -> tuple[dict[int, list[tuple[int, str]]], Any, Any]:
    """Run a computation; returns by port what came out of it, late and alerts, the dead letters and the counts."""
    checked = source().to(computation)
    ends = [checked, checked.output("late"), checked.output("alerts")]
    application = wallaroo.build_application("outputs", *(end.to_sink(sink()) for end in ends))
    stage = Stage(application, kit.stage_of(application, "0/sources/0"))
    with stage.call(0, InFlight(""), ()):
        outputs = stage.run(0, kit.wire([payload.encode() for payload in payloads]))
    found = {port: [] for port in (1, 2, 3)}
    for output in outputs:
        if output.port in found:
            found[output.port] += [(number, text.decode()) for number, text in kit.sunk([output])]
    return found, kit.letters(outputs), {count.path: count for count in stage.counts()}


def test_messages_go_where_they_are_emitted_to(kit: Any) -> None:
    found, letters, counts = run(check, "main a", "alerts b", "late", "alerts c", "late d", "main e", kit=kit)
    assert found == {1: [(0, "a"), (5, "e")], 2: [(4, "d")], 3: [(1, "b"), (3, "c")]}
    assert not letters
    numbers = {path: (count.messages_in, count.messages_out) for path, count in counts.items()}
    assert (numbers["0/steps/0"], numbers["0/steps/1"], numbers["0/steps/2"]) == ((6, 2), (1, 1), (2, 2))


def test_nothing_goes_on_of_what_a_failing_call_emitted(kit: Any) -> None:
    found, (raised, undeclared), counts = run(each, "main a,alerts b,boom", "alerts c,nowhere d", "late e", kit=kit)
    assert found == {1: [], 2: [(2, "e")], 3: []}
    assert (raised.code, raised.sequence) == ("C501", 0)
    assert (undeclared.code, undeclared.step, undeclared.sequence, undeclared.traceback) == ("C527", "each", 1, "")
    assert undeclared.error == 'emitted to the output "nowhere"; it declares "alerts", "late"'
    assert counts["0/steps/2"].messages_out == 0


def test_a_stage_without_outputs_refuses_them_where_they_are_made(kit: Any) -> None:
    application = kit.build(lambda builder: builder.to_parallel(stray))
    stage = Stage(application, kit.stage_of(application, "0/sources/0"))
    with stage.call(0, InFlight(""), ()):
        (letter,) = kit.letters(stage.run(0, kit.wire([b"a"])))
    assert (letter.code, letter.step) == ("C527", "stray")
    assert letter.error == 'emitted to the output "alerts"; it declares none'
    assert 'return wallaroo.output("alerts", data)' in letter.traceback
    assert stray("a").value == "a"  # outside of a call it is a value like any other


def test_an_output_does_not_leave_its_stage_as_a_message() -> None:
    with pytest.raises(UndeclaredOutputError):
        pickle.dumps(wallaroo.output("alerts", 1))


@given(some.lists(some.lists(some.tuples(some.sampled_from(["main", "late", "alerts"]), some.text("ab", max_size=2)))))
@settings(max_examples=50, deadline=None)
def test_drawn_emissions_are_those_of_a_plain_loop(kit: Any, drawn: list[list[tuple[str, str]]]) -> None:
    expected: dict[int, list[tuple[int, str]]] = {1: [], 2: [], 3: []}
    for sequence, items in enumerate(drawn):
        for name, value in items:
            if value or name == "main":
                expected[{"main": 1, "late": 2, "alerts": 3}[name]].append((sequence, value))
    payloads = [
        ",".join(f"{name} {value}".rstrip(" ") if name != "main" else f"main {value}" for name, value in items)
        for items in drawn
    ]
    numbers = [number for number, items in enumerate(drawn) if items]
    found, letters, counts = run(each, *(payloads[number] for number in numbers), kit=kit)
    assert {port: [(numbers[at], text) for at, text in texts] for port, texts in found.items()} == expected
    assert not letters
    assert counts["0/steps/0"].messages_out == len(expected[1])
    assert isinstance(counts["0/steps/1"], pb.StepCount)
