"""The names of sinks that the program does not name."""

from typing import Any

import wallaroo
from wallaroo import KafkaSinkConfig, TCPSinkConfig, TCPSourceConfig, build_application
from wallaroo.emit.topology import topology


def test_sinks_of_one_pipeline_are_named_apart(kit: Any) -> None:
    def topic(name: str) -> KafkaSinkConfig:
        return KafkaSinkConfig(name, [("b", "1")], "error", 0, 0, kit.encode)

    def names(*sinks: Any) -> list[str]:
        lines = wallaroo.source("lines", TCPSourceConfig("127.0.0.1", 7010, kit.decode))
        application = build_application("app", lines.to_sinks([*sinks]))
        return [item["name"] for item in topology(application, "/nowhere", "app.py", [])["pipelines"][0]["sinks"]]

    tcp = TCPSinkConfig("127.0.0.1", 7002, kit.encode)
    assert names(topic("alerts"), topic("totals"), tcp) == ["alerts", "totals", "app"]
    assert names(topic("alerts")) == ["app"]
    assert names(tcp, topic("app-2"), tcp, tcp) == ["app", "app-2", "app-3", "app-4"]
