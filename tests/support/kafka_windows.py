"""Counts the records of topics NAME-given and NAME-appended in windows of a second, by key, into topic NAME-out.

Arguments: NAME, HOST:PORT of each broker.
"""

from typing import Any

import wallaroo


class Count(wallaroo.Aggregation):
    """How many records a window has."""

    def initial_accumulator(self) -> list[int]:
        """Begin with none."""
        return [0]

    def update(self, key: str, accumulator: list[int]) -> None:
        """Count a record."""
        accumulator[0] += 1

    def combine(self, earlier: list[int], later: list[int]) -> list[int]:
        """Add two counts."""
        return [earlier[0] + later[0]]

    def output(self, key: str, accumulator: list[int], bounds: Any = None) -> tuple[str, int, int]:
        """Return key, start and count."""
        return key, bounds.start_ms, accumulator[0]


def application_setup(args: list[str]) -> Any:
    """Build it."""
    name, *addresses = args[1:]
    brokers = [(host, int(port)) for host, _, port in (address.partition(":") for address in addresses)]
    given, appended = (
        wallaroo.source(topic, wallaroo.KafkaSourceConfig(f"{name}-{topic}", brokers, "Warn", decode)).key_by(key_of)
        for topic in ("given", "appended")
    )
    sink = wallaroo.KafkaSinkConfig(f"{name}-out", brokers, "Warn", 5, 1_000_000, encode, exactly_once=True)
    windows = wallaroo.range_windows(wallaroo.seconds(1)).over(Count)
    return wallaroo.build_application(name, given.merge(appended).to(windows).to_sink(sink))


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(value: bytes) -> str:
    """Return a key."""
    return value.decode()


@wallaroo.key_extractor
def key_of(key: str) -> str:
    """Return the message as its key."""
    return key


@wallaroo.encoder
def encode(result: tuple[str, int, int]) -> str:
    """Return a line as `support.kafka_application.Topic` reads it."""
    key, start, number = result
    return f"{key}/{start} => {number} x"
