"""Sources, steps and sinks of every kind: read, checked, compiled, explained, compared."""

import copy
import json
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from support.valid_topology import VALID
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.configuration import egress_request, gateway_request, gateway_sources
from wallaroo_runtime.plan import NodeKind, compile_topology, explain, mermaid
from wallaroo_runtime.plan.change import Impact, compare
from wallaroo_runtime.program.application import check_runnable
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.spark.row_sink import RowSinks
from wallaroo_runtime.spark.source.kafka_connector import uses_kafka
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.canonical import canonical_text, interface_hash
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import KafkaSource, Topology

WORKER = json.loads((VALID / "word_count.json").read_bytes())["workers"][0]
LISTENER = {"host": "127.0.0.1", "port": 7010}
RANGE = {"kind": "range", "range_ms": 9000, "slide_ms": 3000, "delay_ms": 0, "late": "drop", "time": "ingest"}
SESSION = {"kind": "session", "gap_ms": 30000, "delay_ms": 0, "late": "drop", "time": "ingest"}
COUNT = {"kind": "count", "count": 10, "flush_ms": 5000}
SOURCES: dict[str, dict[str, Any]] = {
    "tcp": {**LISTENER, "framing": {"kind": "u32be"}, "max_message_bytes": 1000},
    "connector": {**LISTENER, "cookie": "secret", "max_credits": 100, "refill_credits": 50, "max_message_bytes": 1000},
    "generator": {},
    "kafka": {
        "topic": "orders", "brokers": ["127.0.0.1:9092"], "start": "start",
        "partitions": [{"number": 0, "start": "12"}, {"number": 1}],
        "options": {"b": "2", "a": "1"}, "max_message_bytes": 1000,
    },
    "spark": {
        "format": "json", "options": {"path": "in"}, "schema": "v STRING", "value": "v", "key": "v",
        "max_message_bytes": 1000,
    },
}  # fmt: skip
SINKS: dict[str, dict[str, Any]] = {
    "tcp": {"host": "127.0.0.1", "port": 7002},
    "kafka": {"topic": "out", "brokers": ["127.0.0.1:9092"], "options": {}},
    "spark": {"format": "parquet", "options": {"path": "out"}, "value": "value"},
}


def source(kind: str, number: int = 0) -> dict[str, Any]:
    path = {"path": f"0/sources/{number}", "name": f"in{number}", "kind": kind}
    return {**path, **copy.deepcopy(SOURCES[kind]), "codec": "native", "worker": "main"}


def step(number: int, kind: str, *inputs: str, **more: Any) -> dict[str, Any]:
    head = {"path": f"0/steps/{number}", "name": f"step{number}", "kind": kind, "inputs": list(inputs)}
    return {**head, "codec": "native", "worker": "main", **more}


def state(key: str = "message", name: str = "totals") -> dict[str, Any]:
    values = {"values": [], "unknown": "create"} if key == "partition" else {}
    return {"name": name, "codec": "native", "key": {"kind": key, **values}}


def sink(kind: str, *inputs: str) -> dict[str, Any]:
    head = {"path": "0/sinks/0", "name": "out", "kind": kind, **SINKS[kind]}
    return {**head, "inputs": list(inputs), "worker": "main"}


def document(sources: list[Any], steps: list[Any], sink_kind: str = "tcp") -> dict[str, Any]:
    last = f"0/steps/{len(steps) - 1}" if steps else "0/sources/0"
    pipeline = {"name": "p", "sources": sources, "steps": steps, "sinks": [sink(sink_kind, last)]}
    worker = {**copy.deepcopy(WORKER), "components": []}
    return {"topology_version": 1, "name": "kinds", "workers": [worker], "pipelines": [pipeline]}


def windowed(window: dict[str, Any] = RANGE) -> list[dict[str, Any]]:
    """Return key_by, a state computation and a window after it."""
    first = step(0, "key_by", "0/sources/0")
    second = step(1, "state_computation", "0/steps/0", state=state())
    return [first, second, step(2, "window", "0/steps/1", state=state(name="sums"), window=dict(window))]


def findings(value: dict[str, Any]) -> str:
    with pytest.raises(RunError) as caught:
        load_document(value)
    return str(caught.value)


def changed(change: Callable[[dict[str, Any]], object], steps: list[Any], source_kind: str = "tcp") -> str:
    value = document([source(source_kind)], copy.deepcopy(steps))
    change(value["pipelines"][0])
    return findings(value)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("sink_kind", SINKS)
def test_every_kind_loads_and_is_written_in_order(kind: str, sink_kind: str) -> None:
    value = document([source(kind)], [], sink_kind)
    text = canonical_text(load_document(value).document)
    written = json.loads(text)["pipelines"][0]
    head = ["path", "name", "kind"]
    assert list(written["sources"][0]) == [*head, *SOURCES[kind], "codec", "worker"]
    assert list(written["sinks"][0]) == [*head, *SINKS[sink_kind], "inputs", "worker"]
    if kind == "kafka":
        assert list(written["sources"][0]["options"]) == ["a", "b"]


@pytest.mark.parametrize(("kind", "name", "other"), [
    ("connector", "cookie", "other"), ("connector", "host", "::1"), ("kafka", "brokers", ["b:1"]),
])  # fmt: skip
def test_addresses_and_cookies_are_not_part_of_the_interface(kind: str, name: str, other: Any) -> None:
    first, second = (document([source(kind)], []) for _ in range(2))
    second["pipelines"][0]["sources"][0][name] = other
    assert interface_hash(load_document(first)) == interface_hash(load_document(second))


def test_kafka_partitions_have_the_topics_start_unless_they_say_more() -> None:
    (found,) = load_document(document([source("kafka")], [])).sources()
    assert isinstance(found, KafkaSource)
    assert found.partitions == ((0, "12"), (1, "start"))


def test_a_partition_listed_twice() -> None:
    def twice(pipeline: dict[str, Any]) -> None:
        pipeline["sources"][0]["partitions"][1]["number"] = 0

    assert changed(twice, [step(0, "collect", "0/sources/0")], "kafka") == (
        'T203 partition 0 of source "in0" is declared twice\n  at /pipelines/0/sources/0/partitions/1/number\n'
        "  fix: remove one of the two, or give it another number"
    )


def test_a_state_by_message_key_without_a_key() -> None:
    steps = [step(0, "computation", "0/sources/0"), step(1, "state_computation", "0/steps/0", state=state())]
    assert findings(document([source("tcp")], steps)) == (
        'T229 step "step1" keeps state by the key of messages; messages from "step0" have no key\n'
        "  at /pipelines/0/steps/1/inputs/0\n  fix: put key_by or collect before it (Go: KeyBy or Collect)"
    )


@pytest.mark.parametrize("kind", ["kafka", "connector", "spark"])
def test_sources_that_give_keys_need_no_key_by(kind: str) -> None:
    steps = [step(0, "computation", "0/sources/0"), step(1, "state_computation", "0/steps/0", state=state())]
    load_document(document([source(kind)], steps))


def test_one_way_without_a_key_is_enough_for_the_finding() -> None:
    steps = [
        step(0, "key_by", "0/sources/0"),
        step(1, "computation", "0/steps/0", "0/sources/1"),
        step(2, "window", "0/steps/1", state=state(), window=COUNT),
    ]
    second = {**source("tcp", 1), "port": 7011}
    assert 'T229 step "step2" keeps state by the key of messages; messages from "step1" have no key' in findings(
        document([source("tcp"), second], steps)
    )


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "a window without its size": (
        lambda pipeline: pipeline["steps"][2].pop("window"),
        'T102 a step of kind "window" needs the property "window"',
    ),
    "a window without state": (
        lambda pipeline: pipeline["steps"][2].pop("state"),
        'T102 a step of kind "window" needs the property "state"',
    ),
    "a size where no window is": (
        lambda pipeline: pipeline["steps"][1].update(window=COUNT),
        'T102 a step of kind "state_computation" has no window',
    ),
    "a state where none is": (
        lambda pipeline: pipeline["steps"][0].update(state=state("single", "other")),
        'T102 a step of kind "key_by" has no state',
    ),
    "a window of another kind of key": (
        lambda pipeline: pipeline["steps"][2].update(state=state("single", "sums")),
        'T102 a window has no key of kind "single"',
    ),
    "windows with gaps": (
        lambda pipeline: pipeline["steps"][2]["window"].update(slide_ms=9001),
        "T102 slide_ms 9001 is longer than range_ms 9000; messages between two windows would be in none",
    ),
    "too many windows at once": (
        lambda pipeline: pipeline["steps"][2]["window"].update(range_ms=31536000000, slide_ms=1, delay_ms=1),
        "T271 31536000001 windows are open at once for each key; at most 100000 can be",
    ),
    "a component of the program itself": (
        lambda pipeline: pipeline["steps"][0].update(component="key"),
        'T102 worker "main" is the program itself, which knows its steps by their paths',
    ),
    "credits that come too late": (
        lambda pipeline: pipeline.update(sources=[{**source("connector"), "refill_credits": 101}]),
        "T102 refill_credits 101 is more than max_credits 100",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_rules_of_kinds(name: str) -> None:
    change, text = WRONG[name]
    assert changed(change, windowed()).splitlines()[0] == text


def compiled(value: dict[str, Any]) -> Any:
    return compile_topology(load_document(value), shuffle_partitions=2)


def test_keys_and_times_on_the_way_to_a_window() -> None:
    plan = compiled(document([source("tcp")], windowed()))
    nodes = [[(node.kind, node.path, node.timestamps) for node in stage.nodes] for stage in plan.stages]
    assert nodes == [
        [
            (NodeKind.SOURCE, "0/sources/0", False),
            (NodeKind.KEY_BY, "0/steps/0", False),
            (NodeKind.KEY, "0/steps/1", True),
        ],
        [(NodeKind.STATE_COMPUTATION, "0/steps/1", False), (NodeKind.KEY, "0/steps/2", True)],
        [(NodeKind.WINDOW, "0/steps/2", False), (NodeKind.SINK, "0/sinks/0", False)],
    ]
    assert [node.port for stage in plan.stages for node in stage.entries] == [0, 1, 2]


def test_without_a_window_no_times_are_carried() -> None:
    plan = compiled(document([source("kafka")], [step(0, "state_computation", "0/sources/0", state=state())]))
    assert not any(node.timestamps for stage in plan.stages for node in stage.nodes)


def test_explain_names_the_kinds() -> None:
    topology = load_document(document([source("kafka")], windowed(), "spark"))
    text = explain(compile_topology(topology, shuffle_partitions=2), topology)
    for line in (
        '  decode   0/sources/0 "in0", kafka orders [port 0]',
        '  key by   0/steps/0 "step0" <- 0/sources/0',
        '  key      for 0/steps/1 "step1" with timestamps [port 1] <- 0/steps/0',
        '  window   0/steps/2 "step2", state "sums", 9000 ms every 3000 ms [port 2]',
        '  encode   0/sinks/0 "out", spark parquet [port 3] <- 0/steps/2',
        "  source             kafka orders: rows are packed into frames by the tasks",
        "                     writes what is staged for spark parquet",
    ):
        assert line in text.splitlines()
    assert 'n0_sources_0(["in0 kafka orders"])' in mermaid(topology)


def compared(change: Callable[[Any], object], kind: str, steps: list[Any]) -> list[tuple[str, Impact]]:
    first, second = (document([source(kind)], copy.deepcopy(steps)) for _ in range(2))
    change(second["pipelines"][0])
    return [(change.text, change.impact) for change in compare(load_document(first), load_document(second))]


SAFE, DRAIN, BREAKS = Impact.SAFE, Impact.NEEDS_DRAIN, Impact.BREAKS_STATE
CHANGES: list[tuple[str, Callable[[Any], object], str, Impact]] = [
    ("kafka", lambda p: p["sources"][0].update(topic="bills"),
     'topic of source "in0" (0/sources/0) was orders and is bills; Spark\'s checkpoint has the offsets of the former',
     BREAKS),
    ("kafka", lambda p: p["sources"][0].update(brokers=["b:1", "c:2"]),
     'address of source "in0" (0/sources/0) was 127.0.0.1:9092 and is b:1,c:2', SAFE),
    ("kafka", lambda p: p["sources"][0].update(start="end", partitions=[]),
     'start of source "in0" (0/sources/0) was start and is end', SAFE),
    ("kafka", lambda p: p.update(sources=[source("tcp")]),
     'source "in0" (0/sources/0) is gone; Spark\'s checkpoint has the offsets of the sources that it began with',
     BREAKS),
    ("tcp", lambda p: p.update(sources=[source("spark")]),
     'source "in0" (0/sources/0) is new; Spark\'s checkpoint has the offsets of the sources that it began with',
     BREAKS),
    ("tcp", lambda p: p.update(sources=[source("generator")]),
     'source "in0" (0/sources/0) is gone; its messages in the journal could no longer be decoded', DRAIN),
    ("spark", lambda p: p["sources"][0].update(schema="v BINARY"),
     'schema of source "in0" (0/sources/0) was v STRING and is v BINARY; Spark\'s checkpoint has the offsets of the '
     "former", BREAKS),
    ("connector", lambda p: p["sources"][0].update(max_credits=200),
     'max_credits of source "in0" (0/sources/0) was 100 and is 200', SAFE),
    ("tcp", lambda p: p["steps"][2]["window"].update(slide_ms=9000),
     'window of state "sums" of step "step2" (0/steps/2) was 9000 ms every 3000 ms by ingest time and is 9000 ms every '
     "9000 ms by ingest time; what it has gathered would not fit", BREAKS),
    ("tcp", lambda p: p["steps"][2].update(window=COUNT),
     'window of state "sums" of step "step2" (0/steps/2) was 9000 ms every 3000 ms by ingest time and is 10 messages; '
     "what it has gathered would not fit", BREAKS),
    ("tcp", lambda p: p["steps"][2].update(window=SESSION),
     'window of state "sums" of step "step2" (0/steps/2) was 9000 ms every 3000 ms by ingest time and is sessions by '
     "ingest time; what it has gathered would not fit", BREAKS),
    ("tcp", lambda p: p["steps"][2]["window"].update(late="fire_per_message"),
     'late of step "step2" (0/steps/2) was drop and is fire_per_message', SAFE),
    ("tcp", lambda p: p["sinks"][0].update(host="::1"),
     'address of sink "out" (0/sinks/0) was 127.0.0.1:7002 and is ::1:7002', SAFE),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "text", "impact"), CHANGES)
def test_changes_of_kinds(kind: str, change: Callable[[Any], object], text: str, impact: Impact) -> None:
    assert (text, impact) in compared(change, kind, windowed())


def test_sinks_of_spark_need_an_egress_beside_the_driver() -> None:
    topology: Topology = load_document(document([source("tcp")], [], "spark"))
    (part,) = topology.spark_sinks()
    with pytest.raises(RunError) as caught:
        RowSinks(Mock(spec=[]), {1: part}, OutputPlace(service=Service("egress", "h:1")), RecordCount())
    assert str(caught.value) == (
        'P303 "0/sinks/0": a sink of kind "spark" with a remote egress is not supported\n'
        "  fix: let the driver start the egress"
    )


def transactional(exactly_once: bool = True) -> dict[str, Any]:
    value = document([source("tcp")], [], "kafka")
    value["pipelines"][0]["sinks"][0].update(exactly_once=exactly_once)
    return value


@pytest.mark.parametrize("exactly_once", [True, False])
def test_what_the_egress_is_told_of_a_topic(exactly_once: bool) -> None:
    topology = load_document(transactional(exactly_once))
    plan = compile_topology(topology, shuffle_partitions=1)
    assert not list(topology.spark_sinks())
    assert not uses_kafka(topology)
    (found,) = egress_request(topology, plan).sinks
    topic = topology.document["pipelines"][0]["sinks"][0]
    expected = {name: topic[name] for name in ("brokers", "topic", "options")}
    assert found.kafka == pb.KafkaTopic(application="kinds", exactly_once=exactly_once, **expected)
    assert "  egress             writes kafka " in explain(plan, topology)


def test_changes_of_exactly_once() -> None:
    on, off = load_document(transactional()), load_document(transactional(exactly_once=False))
    begun, ended = compare(off, on), compare(on, off)
    text = 'exactly_once of sink "out" (0/sinks/0) was'
    assert [(change.text, change.impact) for change in begun] == [(f"{text} False and is True", SAFE)]
    assert [(change.text, change.impact) for change in ended] == [(f"{text} True and is False", SAFE)]


def records(document: dict[str, Any], side: str, **more: Any) -> Topology:
    """Return the topology with more properties of its first source or sink; None takes one away."""
    part = document["pipelines"][0][side][0]
    part |= more
    for name in [name for name, value in more.items() if value is None]:
        del part[name]
    return load_document(document)


def test_changes_of_whole_records() -> None:
    plain = records(transactional(), "sinks")
    whole = records(transactional(), "sinks", content="record", create={"partitions": 3})
    text = (
        'content of sink "out" (0/sinks/0) was value and is record; output that waits for its egress is in the former'
    )
    assert (text, DRAIN) in [(change.text, change.impact) for change in compare(plain, whole)]
    assert DRAIN in [change.impact for change in compare(whole, plain)]
    value = document([source("kafka")], [])
    del value["pipelines"][0]["sources"][0]["partitions"]
    stream, table = records(value, "sources", content="record"), records(copy.deepcopy(value), "sources", table=True)
    text = 'table of source "in0" (0/sources/0) was'
    reason = "; Spark's checkpoint goes on after the records that were read, so the table would miss them"
    assert [(change.text, change.impact) for change in compare(stream, table)] == [
        (f"{text} False and is True{reason}", Impact.BREAKS_STATE)
    ]
    assert [(change.text, change.impact) for change in compare(table, stream)] == [(f"{text} True and is False", SAFE)]
    created = records(copy.deepcopy(value), "sources", create={"like": "x"})
    assert [change.impact for change in compare(stream, created)] == [SAFE]


def test_what_is_said_of_whole_records() -> None:
    topology = load_document(json.loads((VALID / "records.json").read_bytes()))
    plan = compile_topology(topology, shuffle_partitions=1)
    assert [sink.kafka.records for sink in egress_request(topology, plan).sinks] == [True, True]
    assert "kafka users, a table: read whole, before the rest of a micro-batch" in explain(plan, topology)


def test_what_a_gateway_is_told_of_a_connector_source() -> None:
    topology = load_document(document([source("connector")], []))
    check_runnable(topology)
    plan = compile_topology(topology, shuffle_partitions=1)
    (found,) = gateway_request(topology, plan, gateway_sources(topology)).sources
    assert found == pb.Source(
        path="0/sources/0",
        name="in0",
        host="127.0.0.1",
        tcp_port=7010,
        framing="connector",
        connector=pb.Connector(cookie="secret", max_credits=100, refill_credits=50),
        max_message_bytes=1000,
    )
