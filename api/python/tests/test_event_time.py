"""The time that a decoder gives, at every kind of source."""

from typing import Any

import pytest

import wallaroo
from wallaroo.emit.topology import topology


class Timed:
    """A decoder that gives a time."""

    def decode(self, bs: bytes) -> str:
        return bs.decode()

    def event_time(self, bs: bytes) -> int:
        return int(bs)


class Counted(wallaroo.Aggregation):
    """Counts messages."""

    def initial_accumulator(self) -> list[int]:
        return [0]

    def update(self, input: Any, accumulator: list[int]) -> None:
        accumulator[0] += 1

    def combine(self, left: list[int], right: list[int]) -> list[int]:
        return [left[0] + right[0]]

    def output(self, key: Any, accumulator: list[int]) -> str:
        return str(accumulator[0])


@wallaroo.line_encoder
def encode(text: str) -> str:
    return text


@pytest.mark.parametrize(
    "config",
    [
        wallaroo.KafkaSourceConfig("t", [("127.0.0.1", 9092)], "Warn", Timed),
        wallaroo.SparkSourceConfig("rate", {}, Timed, timestamp="timestamp"),
        wallaroo.SparkSourceConfig("rate", {}, Timed),
    ],
)
def test_the_time_of_the_decoder_replaces_that_of_records(config: Any) -> None:
    windows = wallaroo.range_windows(wallaroo.seconds(1)).over(Counted)
    counts = wallaroo.source("timed", config).collect().to(windows)
    app = wallaroo.build_application("a", counts.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)))
    (source,) = app.pipelines[0].sources
    assert source.event_time is not None and source.event_time(b"7") == 7
    assert topology(app, "/nowhere", "app.py", [])["pipelines"][0]["steps"][1]["window"]["time"] == "event"
