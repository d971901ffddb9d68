"""Declarations in the manner of Wallaroo 0.6: the graph in the document, and every finding at once."""

from collections.abc import Callable
from typing import Any

import pytest

import wallaroo
from wallaroo import Pipeline, TCPSinkConfig, TCPSourceConfig, WallarooParameterError, build_application
from wallaroo.emit.topology import topology


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs: bytes) -> bytes:
    return bs


@wallaroo.encoder
def encode(data: Any) -> Any:
    return data


@wallaroo.computation("pass")
def same(data: Any) -> Any:
    return data


@wallaroo.computation_multi("split")
def split(data: Any) -> Any:
    return data.split()


@wallaroo.key_extractor
def word(data: Any) -> Any:
    return data


@wallaroo.partition
def part(data: Any) -> Any:
    return data


class Total:
    """A state."""

    count = 0


@wallaroo.state_computation("count", state=Total)
def count(data: Any, state: Total) -> Any:
    state.count += 1
    return state.count


@wallaroo.state_computation("keep")
def keep(data: Any, state: Any) -> Any:
    return data, True


class Longest(wallaroo.Aggregation):
    """An aggregation."""

    def initial_accumulator(self) -> Any:
        return [""]

    def update(self, input: Any, accumulator: Any) -> None:
        accumulator[0] = max(accumulator[0], input, key=len)

    def combine(self, accumulator1: Any, accumulator2: Any) -> Any:
        return [max(accumulator1[0], accumulator2[0], key=len)]

    def output(self, key: Any, accumulator: Any) -> Any:
        return accumulator[0]


class Bounded(Longest):
    """One that asks for the bounds of its windows."""

    def output(self, key: Any, accumulator: Any, bounds: Any = None) -> Any:
        return f"{accumulator[0]} {bounds.end_ms - bounds.start_ms}"


class TooMuch(Longest):
    """One that asks for more."""

    def output(self, key: Any, accumulator: Any, bounds: Any, more: Any) -> Any:  # type: ignore[override]
        return more


def lines(port: int = 7010, name: str = "lines") -> Pipeline:
    return wallaroo.source(name, TCPSourceConfig("127.0.0.1", port, decode))


def sink(port: int = 7002) -> TCPSinkConfig:
    return TCPSinkConfig("127.0.0.1", port, encode)


def document(pipeline: Pipeline) -> dict[str, Any]:
    found: dict[str, Any] = topology(build_application("app", pipeline), "/nowhere", "app.py", [])["pipelines"][0]
    return found


def wiring(pipeline: Pipeline) -> list[tuple[str, str, tuple[str, ...]]]:
    line = document(pipeline)
    return [(item["path"], item["name"], tuple(item["inputs"])) for part in ("steps", "sinks") for item in line[part]]


def test_one_pipeline_holds_sources_steps_and_sinks() -> None:
    line = document(lines().to(split).key_by(word).to(count).to_sinks([sink(), sink(7003)]))
    assert line["name"] == "app"
    assert [(source["name"], source["kind"]) for source in line["sources"]] == [("lines", "tcp")]
    assert [(step["path"], step["name"], step["kind"], step["inputs"]) for step in line["steps"]] == [
        ("0/steps/0", "split", "computation_multi", ["0/sources/0"]),
        ("0/steps/1", "word", "key_by", ["0/steps/0"]),
        ("0/steps/2", "count", "state_computation", ["0/steps/1"]),
    ]
    assert line["steps"][2]["state"] == {"name": "count", "codec": "native", "key": {"kind": "message"}}
    assert [(item["name"], item["inputs"]) for item in line["sinks"]] == [
        ("app", ["0/steps/2"]), ("app-2", ["0/steps/2"]),
    ]  # fmt: skip


def test_merged_pipelines_give_a_step_several_inputs() -> None:
    first, second = lines(), lines(7011, "others").to(same)
    assert wiring(first.key_by(word).merge(second.key_by(word)).to(count).to_sink(sink())) == [
        ("0/steps/0", "pass", ("0/sources/1",)),
        ("0/steps/1", "word", ("0/sources/0",)),
        ("0/steps/2", "word", ("0/steps/0",)),
        ("0/steps/3", "count", ("0/steps/1", "0/steps/2")),
        ("0/sinks/0", "app", ("0/steps/3",)),
    ]


def test_a_pipeline_never_changes() -> None:
    first = lines()
    second = first.to(split)
    third = first.clone().to(same)
    assert wiring(second.merge(third).to_sink(sink())) == [
        ("0/steps/0", "split", ("0/sources/0",)),
        ("0/steps/1", "pass", ("0/sources/0",)),
        ("0/sinks/0", "app", ("0/steps/0", "0/steps/1")),
    ]
    assert wiring(first.to_sink(sink())) == [("0/sinks/0", "app", ("0/sources/0",))]
    assert wiring(Pipeline.from_source("s", TCPSourceConfig("127.0.0.1", 1, decode)).to_sink(sink()))[0][1] == "app"


def test_states_of_one_name_are_told_apart() -> None:
    line = document(lines().key_by(word).to(count).collect().to(count).to_sink(sink()))
    assert [step["state"]["name"] for step in line["steps"] if "state" in step] == ["count", "count 2"]
    assert [step["kind"] for step in line["steps"]] == ["key_by", "state_computation", "collect", "state_computation"]


def test_windows() -> None:
    windows = wallaroo.range_windows(wallaroo.seconds(9)).with_slide(wallaroo.seconds(3))
    late = windows.with_delay(wallaroo.milliseconds(500)).with_late_data_policy("place-in-oldest-window")
    counts = wallaroo.count_windows(10)
    line = document(lines().key_by(word).to(late.over(Longest)).collect().to(counts.over(Longest())).to_sink(sink()))
    assert [(step["kind"], step["name"], step.get("window")) for step in line["steps"]] == [
        ("key_by", "word", None),
        ("window", "Longest", {
            "kind": "range", "range_ms": 9000, "slide_ms": 3000, "delay_ms": 500, "late": "place_in_oldest_window",
            "time": "ingest",
        }),
        ("collect", "collect", None),
        ("window", "Longest", {"kind": "count", "count": 10, "flush_ms": 5000}),
    ]  # fmt: skip
    assert line["steps"][1]["state"]["key"] == {"kind": "message"}
    tumbling = document(lines().collect().to(wallaroo.range_windows(wallaroo.hours(1)).over(Longest)).to_sink(sink()))
    assert tumbling["steps"][1]["window"]["slide_ms"] == wallaroo.minutes(60) // wallaroo.milliseconds(1) == 3_600_000


def test_event_time_counts_where_all_sources_give_it() -> None:
    windows = wallaroo.range_windows(wallaroo.seconds(1)).over(Longest)
    rows = wallaroo.source("rows", wallaroo.SparkSourceConfig("rate", {}, decode, timestamp="timestamp"))
    alone = document(rows.collect().to(windows).to_sink(sink()))
    mixed = document(rows.merge(lines()).collect().to(windows).to_sink(sink()))
    assert alone["steps"][1]["window"]["time"] == "event"
    assert mixed["steps"][1]["window"]["time"] == "ingest"


@pytest.mark.parametrize(
    ("declare", "expected"),
    [
        (lambda: wallaroo.range_windows(-1), "range_windows: parameter range_ns is -1; expected nanoseconds"),
        (lambda: wallaroo.range_windows(0), "range_windows: parameter range_ns is 0; expected nanoseconds"),
        (lambda: wallaroo.count_windows(0), "count_windows: parameter count is 0; expected an int of 1 to"),
        (
            lambda: wallaroo.range_windows(wallaroo.seconds(1)).with_slide(wallaroo.seconds(2)),
            "with_slide: parameter slide is 2000000000; expected at most the range, 1000000000",
        ),
        (
            lambda: wallaroo.range_windows(wallaroo.seconds(1)).with_delay(0).with_delay(0),
            "with_delay: parameter delay is 0; expected one call of with_delay",
        ),
        (
            lambda: wallaroo.range_windows(wallaroo.seconds(1)).with_late_data_policy("keep"),
            'with_late_data_policy: parameter policy is \'keep\'; expected "drop" or "fire-per-message" or',
        ),
    ],
)
def test_windows_that_cannot_be(declare: Callable[[], object], expected: str) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        declare()
    (finding,) = caught.value.diagnostics
    assert f"{finding.code} {finding.message}".startswith(f"T207 {expected}")
    assert (finding.file.rpartition("/")[2], finding.line > 0) == ("test_pipeline.py", True)


def old(builder: wallaroo.ApplicationBuilder) -> wallaroo.ApplicationBuilder:
    return builder.new_pipeline("p", TCPSourceConfig("127.0.0.1", 7010, decode))


class Misspelt(wallaroo.Aggregation):
    def initial_accumulator(self) -> Any:
        return [0]

    def udpate(self, data: Any, accumulator: Any) -> Any:
        accumulator[0] += data

    def output(self, key: Any, accumulator: Any) -> Any:
        return accumulator[0]


MISSPELT = wallaroo.count_windows(3).over(Misspelt)


FINDINGS: list[tuple[str, Callable[[], Any], list[str]]] = [
    (
        "merged with itself",
        lambda: build_application("app", (line := lines()).merge(line).to_sink(sink())),
        ['T212 merge cannot follow "lines"; both sides end in it'
         " / merge pipelines that have different last steps"],
    ),
    (
        "no sink",
        lambda: build_application("app", lines().to(same)),
        ['T204 pipeline "app" has no end after "same" / end each pipeline with to_sink or done'],
    ),
    (
        "no sink after two of three branches",
        lambda: build_application("app", (line := lines()).to(same).to_sink(sink()), line.key_by(word), line),
        ['T204 pipeline "app" has no end after "lines" / end each pipeline with to_sink or done',
         'T204 pipeline "app" has no end after "word" / end each pipeline with to_sink or done'],
    ),
    (
        "after the sink",
        lambda: build_application("app", lines().to_sink(sink()).to(same).merge(lines(7011, "x"))),
        ["T212 to cannot follow to_sink; the pipeline has ended / put it before the sinks",
         "T212 merge cannot follow to_sink; the pipeline has ended / put it before the sinks"],
    ),
    (
        "computation of the builder",
        lambda: build_application("app", lines().key_by(word).to(keep).to_sink(sink())),
        ["T207 to: parameter computation is keep, made for ApplicationBuilder (Wallaroo 0.1 to 0.5); expected one for"
         " wallaroo.source (Wallaroo 0.6)"
         ' / name its state, @wallaroo.state_computation("keep", state=StateClass), and return the output alone'],
    ),
    (
        "computation of the pipeline in the builder",
        lambda: old(wallaroo.ApplicationBuilder("app")).to_state_partition(count, Total, "s", word)
        .to_sink(sink()).build(),
        ["T207 to_state_partition: parameter computation is count, made for wallaroo.source (Wallaroo 0.6); "
         "expected one for"
         " ApplicationBuilder"
         " (Wallaroo 0.1 to 0.5) / leave `state` out: @wallaroo.state_computation(\"count\"), and return"
         " (output, True)"],
    ),
    (
        "wrong parameters",
        lambda: build_application(
            "app", lines().merge("x").to(wallaroo.count_windows(3)).key_by(7).to_sinks([])  # type: ignore[arg-type]
        ),
        ["T207 merge: parameter pipeline is 'x'; expected a Pipeline / pass a Pipeline",
         "T207 to: parameter computation is count_windows(3); expected windows with an aggregation"
         " / end them with .over(YourAggregation)",
         "T207 key_by: parameter key_extractor is 7; expected a key extractor"
         " / pass a function decorated with @wallaroo.key_extractor, or an object of a class",
         "T207 to_sinks: parameter sink_configs is []; expected sink configs, e.g. [TCPSinkConfig(...)]"
         " / pass sink configs, e.g. [TCPSinkConfig(...)]"],
    ),
    (
        "no pipeline",
        lambda: build_application("app", same),  # type: ignore[arg-type]
        ["T207 build_application: parameter pipeline is"],
    ),
    (
        "an aggregation that lacks a method",
        lambda: build_application("app", lines().collect().to(wallaroo.count_windows(3).over(Total)).to_sink(sink())),
        ["T223 aggregation Total has no method initial_accumulator"
         " / define `def initial_accumulator(self)`"],
    ),
    (
        "an aggregation with a misspelt method, and without another one",
        lambda: build_application("app", lines().collect().to(MISSPELT).to_sink(sink())),
        ['T223 aggregation Misspelt has no method update; did you mean "udpate"?'
         " / define `def update(self, input, accumulator)`",
         "T223 aggregation Misspelt has no method combine / define `def combine(self, accumulator1, accumulator2)`"],
    ),
    (
        "functions in place of an aggregation",
        lambda: build_application("app", lines().collect().to(wallaroo.count_windows(3).over(lambda data: data))
                                  .to_sink(sink())),
        ["T207 to: parameter aggregation is <lambda>.<lambda>, a plain function; expected an Aggregation"
         " / write a class that extends wallaroo.Aggregation, and pass it to `over`"],
    ),
    (
        "functions that cannot be decorated",
        lambda: build_application("app", lines().to(print).key_by(lambda data: data).to(str.upper).to_sink(sink())),
        ['T207 to: parameter computation is print, a plain function; expected a decorated one / write a '
         'function that calls it, and decorate that with'
         ' @wallaroo.computation("name")',
         'T207 to: parameter computation is str.upper, a plain function; expected a decorated one / write a '
         'function that calls it, and decorate that with'
         ' @wallaroo.computation("name")',
         "T207 key_by: parameter key_extractor is <lambda>.<lambda>, a plain function; expected a decorated "
         "one / write a function with `def` in its place, and"
         " decorate that with @wallaroo.key_extractor"],
    ),
]  # fmt: skip


def test_a_key_extractor_and_a_partition_function_are_the_same() -> None:
    build_application("app", lines().key_by(part).to(count).to_sink(sink()))
    old(wallaroo.ApplicationBuilder("app")).to_state_partition(keep, Total, "s", word).to_sink(sink()).build()


@pytest.mark.parametrize(("declare", "expected"), [pytest.param(*case[1:], id=case[0]) for case in FINDINGS])
def test_findings(declare: Callable[[], Any], expected: list[str]) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        declare()
    found = [f"{finding.code} {finding.message} / {finding.fix}" for finding in caught.value.diagnostics]
    assert len(found) == len(expected), found
    for actual, start in zip(sorted(found), sorted(expected), strict=True):
        assert actual.startswith(start)
    assert all(finding.file.endswith("test_pipeline.py") for finding in caught.value.diagnostics)


def test_an_aggregation_may_ask_for_bounds() -> None:
    windows = wallaroo.range_windows(wallaroo.seconds(2))
    build_application("app", lines().collect().to(windows.over(Bounded)).to_sink(sink()))
    with pytest.raises(WallarooParameterError) as caught:
        build_application("app", lines().collect().to(windows.over(TooMuch)).to_sink(sink()))
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.fix) == ("T202", "declare it as `def output(self, key, accumulator, bounds)`")
