"""Counts the words of topic NAME-in into topic NAME-out, exactly once.

Arguments: NAME, HOST:PORT of each broker, --create if the topics are created, --end if reading begins at the end of the
topic. The environment variable FROM may have other brokers for the source.
"""

import os
from typing import Any

import wallaroo

CREATE, END = "--create", "--end"


def application_setup(args: list[str]) -> Any:
    """Build it."""
    name, *addresses = (each for each in args[1:] if each not in (CREATE, END))
    others = os.environ.get("FROM", ",".join(addresses)).split(",")
    brokers, origin = (
        [(host, int(port)) for host, _, port in (address.partition(":") for address in listed)]
        for listed in (addresses, others)
    )
    more: dict[str, Any] = {"create": {"partitions": 3}} if CREATE in args else {}
    start = "end" if END in args else "start"
    source = wallaroo.KafkaSourceConfig(f"{name}-in", origin, "Warn", decode, start=start, **more)
    sink = wallaroo.KafkaSinkConfig(f"{name}-out", brokers, "Warn", 5, 1_000_000, encode, exactly_once=True, **more)
    return wallaroo.build_application(name, wallaroo.source("words", source).key_by(word_of).to(count).to_sink(sink))


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(value: bytes) -> str:
    """Return a word."""
    return value.decode()


@wallaroo.key_extractor
def word_of(word: str) -> str:
    """Return a word as its key."""
    return word


class Count:
    """How often a word came."""

    def __init__(self) -> None:
        self.number = 0


@wallaroo.state_computation("count", Count)
def count(word: str, state: Count) -> tuple[str, int]:
    """Count a word."""
    state.number += 1
    return word, state.number


@wallaroo.encoder
def encode(result: tuple[str, int]) -> tuple[str, str, None]:
    """Return a line as `support.kafka_application.Topic` reads it."""
    word, number = result
    return f"{word} => {number} x", word, None
