"""Sources and sinks of every kind but TCP: what the document says of them, and what is wrong with them."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallaroo
from wallaroo import WallarooParameterError
from wallaroo.emit.topology import topology
from wallaroo.endpoint.config import current_arguments, given_arguments

SOURCE_OPTIONS = """
    --kafka_source_topic in --kafka_source_brokers=h1,h2:1234 --kafka_source_partitions 0,2:5,7:END
    --kafka_source_consumer_offset_default -3 --kafka_source_consumer_check_crc
    --kafka_source_fetch_interval 2000000
"""
SINK_OPTIONS = """
    --kafka_sink_topic out --kafka_sink_brokers 127.0.0.1:9092 --kafka_sink_max_message_size 100000
    --kafka_sink_max_produce_buffer_ms 10 --kafka_sink_produce_acks -1
"""
BAD_OPTIONS = "--kafka_source_topic in --kafka_source_brokers h:x --kafka_source_partitions one"
ARGS = (SOURCE_OPTIONS + SINK_OPTIONS).split()
SOURCE_FIELDS = {
    "topic": "in",
    "brokers": ["h1:9092", "h2:1234"],
    "start": "-3",
    "partitions": [{"number": 0}, {"number": 2, "start": "5"}, {"number": 7, "start": "end"}],
    "options": {"kafka.check.crcs": "true", "kafka.fetch.max.wait.ms": "2"},
    "max_message_bytes": 16777216,
}
SINK_FIELDS = {
    "topic": "out",
    "brokers": ["127.0.0.1:9092"],
    "options": {"kafka.acks": "-1", "kafka.linger.ms": "10", "kafka.max.request.size": "100000"},
}


class Text:
    """Decodes and encodes; needs no header, for records have none."""

    def decode(self, bs: bytes) -> str:
        return bs.decode()

    def encode(self, data: str) -> Any:
        return data, None


class Numbers:
    """A generator."""

    def initial_value(self) -> int:
        return 0

    def apply(self, previous: int) -> int:
        return previous + 1


def parts(source: Any, sink: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return source and sink as in the document."""
    app = wallaroo.ApplicationBuilder("app").new_pipeline("line", source).to_sink(sink).build()
    (line,) = topology(app, "/nowhere", "app.py", [])["pipelines"]
    return line["sources"][0], line["sinks"][0]


def fields(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in ("path", "name", "codec", "worker", "inputs")}


def tcp() -> wallaroo.TCPSinkConfig:
    return wallaroo.TCPSinkConfig("127.0.0.1", 7002, Text)


def test_kafka_by_the_application_s_arguments() -> None:
    with given_arguments(ARGS):
        source, sink = parts(wallaroo.DefaultKafkaSourceCLIParser(Text), wallaroo.DefaultKafkaSinkCLIParser(Text))
    assert fields(source) == {"kind": "kafka", **SOURCE_FIELDS}
    assert list(fields(source)) == ["kind", *SOURCE_FIELDS]
    assert fields(sink) == {"kind": "kafka", **SINK_FIELDS}
    assert current_arguments() == ()


def test_kafka_by_given_arguments_and_by_another_name() -> None:
    custom = wallaroo.CustomKafkaSourceCLIParser(ARGS, Text()), wallaroo.CustomKafkaSinkCLIParser(ARGS, Text())
    assert [fields(part) for part in parts(*custom)] == [
        {"kind": "kafka", **SOURCE_FIELDS},
        {"kind": "kafka", **SINK_FIELDS},
    ]
    with given_arguments(["--mine_topic", "t", "--mine_brokers", "h"]):
        source, _ = parts(wallaroo.DefaultKafkaSourceCLIParser(Text, name="mine"), tcp())
    assert (source["topic"], source["start"], source["brokers"]) == ("t", "start", ["h:9092"])


def test_kafka_in_the_program() -> None:
    brokers = [("127.0.0.1", "9092"), ("::1", 9093)]
    source, sink = parts(
        wallaroo.KafkaSourceConfig("in", brokers, "Warn", Text, start="end"),
        wallaroo.KafkaSinkConfig("out", brokers[:1], "Warn", 5, 1000, Text, options={"kafka.acks": "all"}),
    )
    assert (source["start"], source["brokers"], source["options"]) == ("end", ["127.0.0.1:9092", "[::1]:9093"], {})
    assert sink["options"] == {"kafka.acks": "all", "kafka.linger.ms": "5", "kafka.max.request.size": "1000"}
    assert "exactly_once" not in sink


ADDRESSES = st.tuples(
    st.sampled_from(["127.0.0.1", "::1", "fe80::2", "kafka-1.example.org", "h"]), st.integers(0, 65535)
)


@settings(deadline=None)
@given(st.lists(ADDRESSES, min_size=1, max_size=4), st.data())
def test_brokers_are_one_text_or_a_list(addresses: list[tuple[str, int]], data: st.DataObject) -> None:
    texts = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses]
    mixed = [data.draw(st.sampled_from([text, pair, list(pair)])) for text, pair in zip(texts, addresses, strict=True)]
    for brokers in (",".join(texts), ", ".join(texts), texts, tuple(mixed)):
        source, sink = parts(
            wallaroo.KafkaSourceConfig("in", brokers, decoder=Text),
            wallaroo.KafkaSinkConfig("out", brokers, encoder=Text),
        )
        assert (source["brokers"], source["options"]) == (texts, {})
        assert (sink["brokers"], sink["options"]) == (texts, {})


@pytest.mark.parametrize(
    "brokers", ["h", ["h:x"], "h:1,", [("h", 1, 2)], [None], 7, "PLAINTEXT://h:1", {"h": 1}, b"h:1"]
)
def test_brokers_that_are_no_addresses(brokers: Any) -> None:
    source = wallaroo.KafkaSourceConfig("in", brokers, decoder=Text)
    with pytest.raises(WallarooParameterError, match="T211 broker address .* is not usable"):
        parts(source, wallaroo.KafkaSinkConfig("out", "h:1", encoder=Text))


def test_decoded_values_need_a_header_over_tcp_only() -> None:
    @wallaroo.decoder
    def text(value: bytes) -> str:
        return value.decode()

    source, _ = parts(wallaroo.KafkaSourceConfig("in", "h:1", decoder=text), tcp())
    assert source["kind"] == "kafka"
    with pytest.raises(WallarooParameterError, match="T207 .*a decoder without a header; expected one with") as caught:
        parts(wallaroo.TCPSourceConfig("127.0.0.1", 7010, text), tcp())  # type: ignore[arg-type]
    assert "write @wallaroo.decoder(header_length=4" in str(caught.value)
    with pytest.raises(WallarooParameterError, match="T207 .*parameter decoder is None; expected a decoder"):
        parts(wallaroo.KafkaSourceConfig("in", "h:1"), tcp())
    with pytest.raises(WallarooParameterError, match="T207 .*parameter encoder is None; expected an encoder"):
        parts(wallaroo.KafkaSourceConfig("in", "h:1", decoder=text), wallaroo.KafkaSinkConfig("out", "h:1"))


def test_exactly_once_into_kafka() -> None:
    source = wallaroo.KafkaSourceConfig("in", [("h", 1)], "Warn", Text)
    kafka = wallaroo.KafkaSinkConfig("out", [("h", 1)], "Warn", 5, 1000, Text, exactly_once=True)
    _, sink = parts(source, kafka)
    assert list(fields(sink)) == ["kind", "topic", "brokers", "options", "exactly_once"]
    assert sink["exactly_once"] is True
    with given_arguments([*ARGS, "--kafka_sink_exactly_once"]):
        _, sink = parts(source, wallaroo.DefaultKafkaSinkCLIParser(Text))
    assert sink["exactly_once"] is True
    wrong: Any = "yes"
    with pytest.raises(WallarooParameterError, match="T207 .*parameter exactly_once is 'yes'; expected True or False"):
        parts(source, wallaroo.KafkaSinkConfig("out", [("h", 1)], "Warn", 5, 1000, Text, exactly_once=wrong))


@settings(deadline=None)
@given(st.text(max_size=260) | st.from_regex(r"[a-zA-Z0-9._-]{1,260}", fullmatch=True))
def test_names_of_topics_are_those_that_kafka_takes(name: str) -> None:
    sink = wallaroo.KafkaSinkConfig(name, [("h", 1)], "Warn", 5, 1000, Text)
    source = wallaroo.KafkaSourceConfig("in", [("h", 1)], "Warn", Text)
    characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
    if 0 < len(name) < 250 and name not in (".", "..") and set(name) <= set(characters):
        assert len(name) > 200 or parts(source, sink)[1]["topic"] == name
        return
    with pytest.raises(WallarooParameterError, match="(T207 .*parameter topic|T210 .*topic name)"):
        parts(source, sink)


def test_the_functions_that_parse_kafka_s_options() -> None:
    assert wallaroo.kafka_parse_source_options(ARGS) == ("in", [("h1", "9092"), ("h2", "1234")], "Warn")
    assert wallaroo.kafka_parse_sink_options(ARGS) == ("out", [("127.0.0.1", "9092")], "Warn", 10, 100000)
    with pytest.raises(WallarooParameterError, match='T240 sink "kafka_sink": option --kafka_sink_topic is missing'):
        wallaroo.kafka_parse_sink_options(["--kafka_sink_brokers", "h"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["h", "a.b-c", "127.0.0.1", "::1", "fe80::1"]), st.integers(0, 65535)), min_size=1
    )
)
def test_brokers_of_an_option(brokers: list[tuple[str, int]]) -> None:
    addresses = [f"[{host}]" if ":" in host else host for host, _ in brokers]
    text = ",".join(f"{each}:{port}" if port else each for each, (_, port) in zip(addresses, brokers, strict=True))
    parsed = wallaroo.kafka_parse_source_options(["--kafka_source_topic", "in", "--kafka_source_brokers", text])
    assert parsed[1] == [(host, str(port or 9092)) for host, port in brokers]


def test_options_without_effect_are_told() -> None:
    with pytest.warns(UserWarning, match="--kafka_source_log_level has no effect"):
        assert wallaroo.kafka_parse_source_options([*ARGS, "--kafka_source_log_level", "Info"])[2] == "Info"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wallaroo.kafka_parse_source_options(ARGS)


def test_generators() -> None:
    made = [fields(parts(wallaroo.GenSourceConfig(*each), tcp())[0]) for each in [(Numbers,), (Numbers(),)]]
    assert made == [{"kind": "generator"}] * 2
    assert parts(wallaroo.GenSourceConfig("mine", Numbers), tcp())[0]["name"] == "mine"
    with pytest.raises(TypeError, match="takes a generator"):
        wallaroo.GenSourceConfig()


def test_formats_of_spark() -> None:
    source, sink = parts(
        wallaroo.SparkSourceConfig(
            "json",
            {"path": "/in", "multiLine": True, "a": 1},
            Text,
            "to_json(*)",
            "id",
            "at",
            "id STRING, at TIMESTAMP",
        ),
        wallaroo.SparkSinkConfig("parquet", {"path": "/out"}, Text, "CAST(value AS STRING) AS text"),
    )
    assert list(fields(source).items()) == [
        ("kind", "spark"), ("format", "json"), ("options", {"a": "1", "multiLine": "true", "path": "/in"}),
        ("schema", "id STRING, at TIMESTAMP"), ("value", "to_json(*)"), ("key", "id"), ("timestamp", "at"),
        ("max_message_bytes", 16777216),
    ]  # fmt: skip
    assert list(fields(sink).items()) == [
        ("kind", "spark"), ("format", "parquet"), ("options", {"path": "/out"}),
        ("value", "CAST(value AS STRING) AS text"),
    ]  # fmt: skip


def test_settings_that_the_program_changes_later_count_as_they_were() -> None:
    options: dict[str, Any] = {"path": "/in"}
    source = wallaroo.SparkSourceConfig("json", options, Text)
    options["path"] = "/out"
    sink = wallaroo.SparkSinkConfig("parquet", options, Text)
    options.clear()
    assert [part["options"] for part in parts(source, sink)] == [{"path": "/in"}, {"path": "/out"}]
    create: dict[str, Any] = {"partitions": 2, "options": {"cleanup.policy": "compact"}}
    reads = wallaroo.KafkaSourceConfig("in", [("h", 1)], "Warn", Text, create=create)
    create["partitions"], create["options"]["cleanup.policy"] = 3, "delete"
    writes = wallaroo.KafkaSinkConfig("out", [("h", 1)], "Warn", 0, 0, Text, create=create)
    create.clear()
    assert [part["create"] for part in parts(reads, writes)] == [
        {"partitions": 2, "options": {"cleanup.policy": "compact"}},
        {"partitions": 3, "options": {"cleanup.policy": "delete"}},
    ]


def test_tcp_sources_of_both_orders_of_parameters() -> None:
    class Framed(Text):
        def header_length(self) -> int:
            return 4

        def payload_length(self, bs: bytes) -> int:
            return int.from_bytes(bs, "big")

    (address,) = wallaroo.tcp_parse_input_addrs(["--in", "orders@h:7"])
    host, port = address
    first, _ = parts(wallaroo.TCPSourceConfig(host, port, Framed, parallelism=3, name=address.name), tcp())
    second, _ = parts(wallaroo.TCPSourceConfig(address.name, host, port, Framed, max_size=5), tcp())
    assert first == second
    assert (first["name"], first["host"], first["port"]) == ("orders", "h", 7)
    assert parts(wallaroo.TCPSourceConfig("h", "7", Framed, 5), tcp())[0]["name"] == "line"
    with pytest.raises(TypeError, match="decoder"):
        wallaroo.TCPSourceConfig("h", "7")  # type: ignore[call-overload]


FINDINGS: list[tuple[str, Callable[[], object], list[str]]] = [
    (
        "options of Kafka",
        lambda: parts(
            wallaroo.CustomKafkaSourceCLIParser(BAD_OPTIONS.split(), Text),
            wallaroo.CustomKafkaSinkCLIParser([*ARGS, "--kafka_sink_produce_acks", "all"], Text),
        ),
        ['T240 sink "kafka_sink": option --kafka_sink_produce_acks is \'all\'; expected -1, 0 or 1'
         " / give it, e.g. --kafka_sink_produce_acks -1",
         'T240 source "kafka_source": option --kafka_source_brokers is \'h:x\'; expected HOST:PORT,...',
         'T240 source "kafka_source": option --kafka_source_partitions is \'one\'; expected NUMBER or NUMBER:OFFSET,'],
    ),
    (
        "parameters of Kafka",
        lambda: parts(
            wallaroo.KafkaSourceConfig("in", [("h", 99999)], "Warn", Text, start="middle"),
            wallaroo.KafkaSinkConfig("out", [], "Warn", 0, 1, Text),
        ),
        ["T207 new_pipeline: parameter start is 'middle'; expected \"start\", \"end\", an offset, or \"-n\"",
         "T207 to_sink: parameter brokers is none; expected addresses of brokers / pass e.g. \"127.0.0.1:9092\"",
         "T211 broker address 'h:99999' is not usable; port 99999 is not a number of 0 to 65535"],
    ),
    (
        "a generator without apply",
        lambda: parts(wallaroo.GenSourceConfig(Text), tcp()),
        ["T223 generator Text has no method apply", "T223 generator Text has no method initial_value"],
    ),
    (
        "a number as a generator",
        lambda: parts(wallaroo.GenSourceConfig(5), tcp()),
        ["T207 new_pipeline: parameter gen is 5; expected a generator / write a class with `initial_value()` and"],
    ),
    (
        "a function as a generator",
        lambda: parts(wallaroo.GenSourceConfig(len), tcp()),
        ["T207 new_pipeline: parameter gen is len, a plain function; expected a generator / write a class with"],
    ),
    (
        "formats of Spark",
        lambda: parts(wallaroo.SparkSourceConfig("", {}, Text), wallaroo.SparkSinkConfig("x", "y", Text)),  # type: ignore[arg-type]
        ["T207 new_pipeline: parameter format is ''; expected a text",
         "T207 to_sink: parameter options is 'y'; expected a dict of options"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("declare", "expected"), [pytest.param(*case[1:], id=case[0]) for case in FINDINGS])
def test_findings(declare: Callable[[], object], expected: list[str]) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        declare()
    found = sorted(f"{finding.code} {finding.message} / {finding.fix}" for finding in caught.value.diagnostics)
    assert len(found) == len(expected), found
    for actual, start in zip(found, sorted(expected), strict=True):
        assert actual.startswith(start)
    assert all(finding.pointer.startswith("/pipelines/0/s") for finding in caught.value.diagnostics)
