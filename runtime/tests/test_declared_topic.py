"""What a program says of a topic is refused where it is declared or by the runtime, in both languages, or taken."""

import json
import random
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallaroo
from wallaroo.diagnostic.error import DiagnosticError
from wallaroo.emit.topology import topology
from wallaroo.endpoint.kafka_check import SPARK_OPTIONS
from wallaroo_runtime.kafka.consumer import OWN
from wallaroo_runtime.topology.load import load_document

HERE = Path(__file__).parent
GO = HERE.parents[1] / "api" / "go"
SINKS = ("KafkaSink", "KafkaRecordSink")
METHODS = ("KafkaSource", "KafkaRecordSource", *SINKS)
CLIENT = {"kafka.acks": "1", "kafka.security.protocol": "SSL", "kafka.sasl.username": "me"}
CALLBACKS = ("kafka.stats_cb", "kafka.on_delivery", "kafka.logger")
OWNED = {  # by whether the part is a sink; the other kind of client ignores these settings
    False: (*(f"kafka.{name}" for name in OWN), "kafka.group.id", "kafka.Key.Deserializer", *CALLBACKS),
    True: ("kafka.transactional.id", "kafka.delivery.report.only.error", *CALLBACKS),
}
OPTIONS = (
    *CLIENT,
    *SPARK_OPTIONS,
    "MINPARTITIONS",
    "bootstrap.servers",
    "kafka.bootstrap.servers",
    "acks",
    "kafka.",
    "subscribe",
    "startingOffsets",
    "assign",
    *OWNED[False],
    *OWNED[True],
)
STARTS = ("", "", "start", "end", "0", "17", "-3", "middle", "-0", "01", "END", "1\n", " 1")
PARTITIONS = ((), (), (0, 1), (2147483647,), (-1,), (0, 0), (1 << 31,))
BROKERS = (("h:1",), ("h:1", "[::1]:9092"), (), ("",), ("h",), ("h:70000",), ("h:x",), ("a b:1",), ("h:1", ":1"))
TOPICS = ("in", "in", "a.b_c-1", "", ".", "é", "a b", "t" * 250)
CREATES = (
    None, None, {"Like": "other"}, {"Partitions": 3, "Replicas": 2}, {"Like": "in"}, {}, {"Like": "a", "Partitions": 1},
    {"Partitions": -1}, {"Partitions": 10_001}, {"Partitions": 1, "Replicas": 1001}, {"Partitions": 1, "Replicas": -1},
)  # fmt: skip


def drawn(random: random.Random) -> dict[str, Any]:
    """Return a method and a topic as Go's API has it; most fields are as they should be."""

    def some(values: Any, first: int = 2) -> Any:
        return random.choice(values if random.random() < 0.3 else values[:first])

    method = random.choice(METHODS)
    names = [
        random.choice(OPTIONS if random.random() < 0.3 else tuple(CLIENT)) for _ in range(random.choice((0, 0, 1, 2)))
    ]
    return {
        "Method": method,
        "Topic": {
            "Topic": some(TOPICS), "Brokers": some(BROKERS), "Start": some(STARTS), "Partitions": some(PARTITIONS),
            "Options": dict.fromkeys(names, "1"), "Create": some(CREATES),
            "Table": some((False, False, True), 3 if method == "KafkaRecordSource" else 2),
            "ExactlyOnce": some((False, True), 1 if method in SINKS else 2),
        },
    }  # fmt: skip


def faults(method: str, topic: dict[str, Any]) -> set[str]:
    """Return the fields of a topic that are wrong."""
    is_sink, names = method in SINKS, topic["Options"]
    create = {"Partitions": 1} if topic["Create"] is None else topic["Create"]
    known = set() if is_sink else {name.lower() for name in SPARK_OPTIONS}
    limits = {name.lower() for name in SPARK_OPTIONS[5:]} if topic["Table"] else set()
    wrong = {
        "Topic": topic["Topic"] not in ("in", "a.b_c-1"),
        "Brokers": topic["Brokers"] not in (("h:1",), ("h:1", "[::1]:9092")),
        "Start": topic["Start"] not in (("",) if is_sink else ("", "start") if topic["Table"] else STARTS[:7]),
        "Partitions": topic["Partitions"] not in (((),) if is_sink else PARTITIONS[:4]),
        "Options": any(
            name not in (*CLIENT, *OWNED[not is_sink])
            and name.lower() not in known
            or name.lower() in limits
            or name.endswith("bootstrap.servers")
            or name in OWNED[is_sink]
            for name in names
        ),
        "Table": topic["Table"] and method != "KafkaRecordSource",
        "ExactlyOnce": topic["ExactlyOnce"] and method not in SINKS,
        "Create": create not in CREATES[2:4] + ({"Partitions": 1},) and create != {"Like": "in"}
        or create.get("Like") == topic["Topic"],
    }  # fmt: skip
    return {name for name, is_wrong in wrong.items() if is_wrong}


def check(method: str, topic: dict[str, Any], document: dict[str, Any], expected: set[str], file: str) -> None:
    found = document.get("diagnostics", ())
    if not found:
        try:
            load_document(document)
        except DiagnosticError as error:
            found = [asdict(each) for each in error.diagnostics]
    assert bool(found) == bool(expected), (method, topic, document, expected)
    for finding in found:
        assert finding["file"].endswith(file), finding
        assert finding["line"] > 0, finding
        words = f"{finding['pointer']} {finding['message']} {finding['fix']}".lower().replace("_", "")
        assert any(name.lower().rstrip("s") in words for name in expected), (finding, expected)
        if "startingoffsets" in words and method not in SINKS:
            assert "pass it as start" in words  # as somebody who knows Spark's source writes it
        if "'assign'" in words and method not in SINKS:
            assert "partitions" in words


@pytest.mark.slow
def test_in_go() -> None:
    all_drawn = [drawn(random.Random(seed)) for seed in range(500)]
    command = ["go", "run", str(HERE / "declared.go")]
    run = subprocess.run(command, cwd=GO, input=json.dumps(all_drawn), stdout=subprocess.PIPE, text=True, check=True)
    for each, document in zip(all_drawn, json.loads(run.stdout), strict=True):
        expected = faults(each["Method"], each["Topic"])
        check(each["Method"], each["Topic"], document, expected, "declared.go")


class Text:
    def decode(self, value: bytes) -> str:
        return value.decode()

    def encode(self, message: str) -> tuple[bytes, None]:
        return message.encode(), None


def declared(method: str, topic: dict[str, Any]) -> dict[str, Any]:
    """Return the document of an application in Python, or its findings."""
    create = {name.lower(): value for name, value in topic["Create"].items()} if topic["Create"] is not None else None
    content = "record" if "Record" in method else None
    brokers = [tuple(broker.rpartition(":")[::2]) for broker in topic["Brokers"]]
    brokers = [(host.strip("[]"), port) for host, port in brokers]
    try:
        app = wallaroo.ApplicationBuilder("drawn")
        if method in SINKS:
            given = wallaroo.KafkaSinkConfig(
                topic["Topic"], brokers, "Warn", 1, 9, Text(), options=topic["Options"], content=content,
                exactly_once=topic["ExactlyOnce"], create=create,
            )  # fmt: skip
            app.new_pipeline("in", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode)).to_sink(given)
        else:
            start = topic["Start"] or "start"
            source = wallaroo.KafkaSourceConfig(
                topic["Topic"], brokers, "Warn", Text(), options=topic["Options"], content=content, start=start,
                table=topic["Table"], create=create,
            )  # fmt: skip
            app.new_pipeline("in", source).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, Text()))
        return topology(app.build(), "/nowhere", "app.py", [])
    except wallaroo.WallarooParameterError as error:
        return {"diagnostics": [asdict(each) for each in error.diagnostics]}


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(value: bytes) -> str:
    return value.decode()


@given(st.integers(0, 1 << 30).map(random.Random).map(drawn))
def test_in_python(each: dict[str, Any]) -> None:
    method, topic = each["Method"], each["Topic"]
    beyond = {"Partitions"} | (
        {"Start", "Table"} if method in SINKS else {"ExactlyOnce"}
    )  # Python has no such parameter
    topic = {**topic, **{name: () if name == "Partitions" else "" if name == "Start" else False for name in beyond}}
    if method == "KafkaRecordSource":
        topic["ExactlyOnce"] = False
    check(method, topic, declared(method, topic), faults(method, topic), "test_declared_topic.py")
