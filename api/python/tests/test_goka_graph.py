"""Group graphs: what Goka refuses is refused with its words, all findings at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from wallaroo import WallarooParameterError, goka

STRING = goka.String()


def nothing(ctx: goka.Context, message: object) -> None:
    pass


INPUT = goka.input("in", STRING, nothing)
TABLE = goka.persist(STRING)


def findings(define: Callable[[], object]) -> list[tuple[str, str]]:
    with pytest.raises(WallarooParameterError) as caught:
        define()
    return [(finding.code, finding.message) for finding in caught.value.diagnostics]


def test_a_group_whose_topics_kafka_would_refuse() -> None:
    found = findings(lambda: goka.define_group("my group", INPUT, TABLE, goka.loop(STRING, nothing)))
    names = ("'my group-table'", "'my group-loop'")
    assert found == [("T274", f'group "my group": Kafka has no topic of the name {name}') for name in names]


@pytest.mark.parametrize(
    ("edges", "reason"),
    [
        ((), "no input stream in group graph"),
        ((goka.loop(STRING, nothing),), "no input stream in group graph"),
        ((goka.input("", STRING, nothing),), "input topic cannot be empty"),
        ((INPUT, INPUT), "callback for topic in already exists; it is illegal to consume a topic twice"),
        ((INPUT, goka.loop(STRING, nothing), goka.loop(STRING, nothing)), "more than one loop stream in group graph"),
        ((INPUT, TABLE, TABLE), "more than one group table in group graph"),
        ((INPUT, goka.input("g-loop", STRING, nothing)), "should not directly use loop stream"),
        ((INPUT, goka.output("g-loop", STRING)), "should not directly use loop stream"),
        ((INPUT, TABLE, goka.output("g-table", STRING)), "should not directly use group table"),
        ((INPUT, TABLE, goka.join("g-table", STRING)), "should not directly use group table"),
        ((INPUT, TABLE, goka.lookup("g-table", STRING)), "should not directly use group table"),
        ((INPUT, goka.output("a b", STRING)), "Kafka has no topic of the name 'a b'"),
        ((goka.input("..", STRING, nothing),), "Kafka has no topic of the name '..'"),
        ((INPUT, goka.visitor("v", nothing)), "visitors cannot be used in a stateless processor"),
    ],
)
def test_what_goka_refuses(edges: tuple[goka.Edge, ...], reason: str) -> None:
    assert findings(lambda: goka.define_group("g", *edges)) == [("T274", f'group "g": {reason}')]


def test_an_input_of_the_loop_s_topic_is_its_second_reader_too() -> None:
    edges = INPUT, goka.loop(STRING, nothing), goka.input("g-loop", STRING, nothing)
    reasons = [message.partition(": ")[2] for _, message in findings(lambda: goka.define_group("g", *edges))]
    assert sorted(reasons) == [
        "callback for topic g-loop already exists; it is illegal to consume a topic twice",
        "should not directly use loop stream",
    ]


def test_all_findings_are_reported_at_once() -> None:
    def one(ctx: goka.Context) -> None:
        pass

    found = findings(
        lambda: goka.define_group(
            "", goka.input("in", goka.String, nothing), goka.output("", STRING), goka.input("x", STRING, one), 7, TABLE,
            TABLE, nil_handling="drop", context_wrapper=3, update_callback=nothing,
        )
    )  # fmt: skip
    assert [code for code, _ in found] == ["T202", "T202", "T207", "T207", "T207", "T207", "T207", "T207", "T274"]
    texts = "\n".join(message for _, message in found)
    for part in (
        'one takes 1 parameter; expected 2', "goka.input: parameter codec is <class 'wallaroo.goka.codec.String'>",
        "goka.define_group: parameter group is ''", "goka.output: parameter topic is ''", "parameter edges is 7",
        "nil_handling is 'drop'", "context_wrapper is 3", "more than one group table",
    ):  # fmt: skip
        assert part in texts, part


def test_a_finding_names_the_line_of_the_edge() -> None:
    with pytest.raises(WallarooParameterError) as caught:
        goka.define_group("g", INPUT, TABLE, TABLE)
    (finding,) = caught.value.diagnostics
    assert finding.file.endswith("test_goka_graph.py")
    assert "TABLE = goka.persist" in Path(__file__).read_text("utf-8").splitlines()[finding.line - 1]


def test_the_getters_are_goka_s() -> None:
    edges = [
        *goka.inputs(["a", "b"], STRING, nothing), goka.loop(STRING, nothing), goka.join("t", STRING),
        goka.persist(goka.Int64()), goka.lookup("l", STRING), goka.output("o", STRING), goka.visitor("v", nothing),
    ]  # fmt: skip
    graph = goka.define_group("g", edges[:2], *edges[2:])
    assert [edge.topic for edge in graph.input_streams] == ["a", "b"]
    assert [edge.topic for edge in graph.joint_tables + graph.lookup_tables + graph.output_streams] == ["t", "l", "o"]
    assert graph.loop_stream is not None and graph.loop_stream.topic == "g-loop"
    assert str(graph.group_table) == "g-table/Int64" and graph.group_table is not None
    assert graph.group_table.topic == goka.group_table("g")
    assert [edge.topic for edge in graph.visitors] == ["v"]
    again = goka.define_group("g", *(edge for edge in graph.all_edges if edge.kind != "join"))
    assert again.joint_tables == () and again.input_streams == graph.input_streams


def test_suffixes_are_the_program_s() -> None:
    edges = INPUT, TABLE, goka.loop(STRING, nothing)
    graph = goka.define_group("g", *edges, table_suffix="-state", loop_suffix="-again")
    assert graph.group_table is not None and graph.group_table.topic == goka.group_table("g", "-state") == "g-state"
    assert graph.loop_stream is not None and graph.loop_stream.topic == "g-again"


GRAPH = goka.define_group("g", INPUT, TABLE)


@pytest.mark.parametrize(
    ("define", "code", "text"),
    [
        (lambda: goka.application([]), "T207", "goka.application: parameter groups is ()"),
        (lambda: goka.application(["h:1"], INPUT), "T207", "parameter groups is Edge("),
        (lambda: goka.application("h:1", GRAPH), "T207", "parameter brokers is 'h:1'; expected a list of HOST:PORT"),
        (lambda: goka.application([], GRAPH), "T207", "goka.input: parameter brokers is none"),
        (lambda: goka.application(["h"], GRAPH), "T211", "broker address 'h:' is not usable"),
        (lambda: goka.application(["h:1"], GRAPH, start="now"), "T207", "goka.input: parameter start is 'now'"),
        (lambda: goka.application(["h:1"], GRAPH, partitioner="crc32"), "T207", "parameter partitioner is 'crc32'"),
        (lambda: goka.application(["h:1"], GRAPH, on_error="stop"), "T207", "parameter on_error is 'stop'"),
        (lambda: goka.application(["h:1"], GRAPH, replicas=0), "T207", "parameter create is replicas 0"),
        (lambda: goka.application(["h:1"], GRAPH, name="a\nb"), "T210", "application name"),
    ],
)
def test_what_an_application_refuses(define: Callable[[], object], code: str, text: str) -> None:
    found = findings(define)
    assert code in [each for each, _ in found]
    assert any(text in message for _, message in found), found


def test_the_environment_names_other_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    def brokers() -> list[str]:
        pipeline = goka.application(["k:9092"], GRAPH).pipelines[0]
        return [str(end.fields["brokers"]) for end in (*pipeline.sources, *pipeline.sinks)]

    assert set(brokers()) == {"['k:9092']"}
    monkeypatch.setenv("WALLAROO_BROKERS", "127.0.0.1:1,[::1]:2")
    assert set(brokers()) == {"['127.0.0.1:1', '[::1]:2']"}
