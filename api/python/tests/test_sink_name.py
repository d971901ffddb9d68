"""The names of sinks that the program does not name."""

from typing import Any

import wallaroo
from wallaroo import KafkaSinkConfig, TCPSinkConfig, TCPSourceConfig, build_application
from wallaroo.emit.topology import topology


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs: bytes) -> bytes:
    return bs


@wallaroo.encoder
def encode(data: Any) -> Any:
    return data


def topic(name: str) -> KafkaSinkConfig:
    return KafkaSinkConfig(name, [("b", "1")], "error", 0, 0, encode)


def names(*sinks: Any) -> list[str]:
    lines = wallaroo.source("lines", TCPSourceConfig("127.0.0.1", 7010, decode))
    application = build_application("app", lines.to_sinks([*sinks]))
    return [item["name"] for item in topology(application, "/nowhere", "app.py", [])["pipelines"][0]["sinks"]]


def test_topics_of_one_pipeline_are_named_apart() -> None:
    tcp = TCPSinkConfig("127.0.0.1", 7002, encode)
    assert names(topic("alerts"), topic("totals"), tcp) == ["alerts", "totals", "app"]
    assert names(topic("alerts")) == ["app"]
