"""Whole records of Kafka: what the document says of them, and what is wrong with them."""

from pathlib import Path
from typing import Any

import pytest

import wallaroo
from wallaroo import KafkaRecord, WallarooParameterError
from wallaroo.emit.topology import topology
from wallaroo.worker.value.kafka_record import write_record

BROKERS = [("127.0.0.1", 9092)]


def declared(source: dict[str, Any], sink: dict[str, Any]) -> Any:
    """Return the document of an application between two topics."""
    config = wallaroo.KafkaSourceConfig("in", BROKERS, "Warn", None, **{"content": "record", **source})
    out = wallaroo.KafkaSinkConfig(
        "out", BROKERS, "Warn", 5, 1000, None, exactly_once=True, **{"content": "record", **sink}
    )
    app = wallaroo.build_application("Records", wallaroo.source("in", config).to_sink(out))
    return topology(app, str(Path(__file__).parent), "app.py", [])


def test_records_tables_and_topics_to_create() -> None:
    create = {"partitions": 3, "replicas": 2, "options": {"max.message.bytes": 5, "a": True}}
    document = declared({"table": True, "create": create}, {"create": {"like": "in", "replicas": 1, "options": {}}})
    (pipeline,) = document["pipelines"]
    source, sink = pipeline["sources"][0], pipeline["sinks"][0]
    assert list(source)[3:-2] == [
        *("topic", "brokers", "start", "options", "content", "table", "create", "max_message_bytes"),
    ]
    assert source["create"] == {"partitions": 3, "replicas": 2, "options": {"a": "true", "max.message.bytes": "5"}}
    assert (source["content"], source["table"]) == ("record", True)
    assert list(sink)[3:-2] == ["topic", "brokers", "options", "exactly_once", "content", "create"]
    assert sink["create"] == {"like": "in"}
    files = {component["path"]: component["file"] for component in document["workers"][0]["components"]}
    assert files == dict.fromkeys(("0/sources/0", "0/sinks/0"), "test_kafka_record.py"), "the SDK is no part of it"


@pytest.mark.parametrize(
    ("source", "sink", "said"),
    [
        ({"content": "key"}, {}, "parameter content is 'key'; expected \"record\" or None"),
        ({}, {"content": 1}, 'parameter content is 1; expected "record" or None'),
        ({"table": 1}, {}, "parameter table is 1; expected True or False"),
        ({"create": 3}, {}, "parameter create is 3; expected"),
        ({"create": {}}, {}, "parameter create is {}; expected"),
        ({"create": {"like": "a", "partitions": 1}}, {}, "parameter create is {'like': 'a', 'partitions': 1}"),
        ({"create": {"partitions": 1, "copies": 1}}, {}, "parameter create is {'partitions': 1, 'copies': 1}"),
        ({"create": {"like": ""}}, {}, "parameter create is ''; expected"),
        ({}, {"create": {"partitions": 0}}, "parameter create is partitions 0; expected"),
        ({}, {"create": {"partitions": True}}, "parameter create is partitions True; expected"),
        ({}, {"create": {"like": "in", "replicas": 1001}}, "parameter create is replicas 1001; expected"),
        ({}, {"create": {"like": "in", "options": ["a"]}}, "parameter create is options ['a']; expected"),
    ],
)
def test_what_cannot_be_meant(source: dict[str, Any], sink: dict[str, Any], said: str) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        declared(source, sink)
    assert said in str(caught.value)
    assert "T207" in str(caught.value)


def test_a_decoder_is_missing_where_values_are_read() -> None:
    with pytest.raises(WallarooParameterError, match="T207"):
        declared({"content": None}, {})


@pytest.mark.parametrize(
    ("field", "value", "kind", "expected"),
    [
        ("key", "text", "str", "bytes or None"),
        ("value", 1, "int", "bytes or None"),
        ("headers", [(1, b"")], "list", "a list of pairs (str, bytes or None)"),
        ("headers", [("name",)], "list", "a list of pairs (str, bytes or None)"),
        ("headers", {"name": b"x"}, "dict", "a list of pairs (str, bytes or None)"),
        ("headers", [("\ud800", b"")], "list", "a list of pairs (str, bytes or None)"),
        ("partition", 1 << 31, "int", "an int of 32 bits or None"),
        ("timestamp_ms", 1 << 63, "int", "an int of 64 bits"),
        ("timestamp_ms", 1.5, "float", "an int of 64 bits"),
        ("topic", 1, "int", "str"),
    ],
)
def test_a_record_that_has_no_bytes_names_the_field(field: str, value: Any, kind: str, expected: str) -> None:
    with pytest.raises(TypeError) as caught:
        write_record(KafkaRecord(**{"value": b"v", field: value}))
    assert str(caught.value) == f"{field} of the record is {value!r}, of type {kind}; expected {expected}"
