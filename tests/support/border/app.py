"""Every way across the border to another worker, each with a value that no codec can write; `main.go` is the same."""

from typing import Any

import wallaroo

# What a message may be made of where it says so: no JSON has them.
BAD: dict[str, Any] = {
    "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "set": {1}, "bytes": b"x", "big": {"deep": [1j]},
}  # fmt: skip


def application_setup(args: list[str]) -> wallaroo.Application:
    """Declare it for addresses."""
    (source, *_), (sink, *_) = wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    parts = wallaroo.other_program("parts", "parts")
    pipeline = (
        wallaroo.source("source", wallaroo.TCPSourceConfig(*source, decode))
        .to(parts.computation("first", input="json", output="json"))
        .to(middle)
        .to(parts.computation("second", input="json", output="json"))
        .to(last)
        .key_by(key)
        .to(parts.state_computation("count", input="json", output="json"))
        .key_by(key)
        .to(total)
        .to(parts.computation("third", input="json", output="json"))
        .to_sink(wallaroo.TCPSinkConfig(*sink, encode))
    )
    return wallaroo.build_application("border", pipeline)


def spoilt(message: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a message, with a value that cannot be written where the message names this place."""
    return message | {"value": BAD[message["bad"]]} if message["place"] == place else message


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data: bytes) -> dict[str, Any]:
    """Read key, place and kind of value."""
    name, place, bad = data.decode().split()
    return spoilt({"key": name, "place": place, "bad": bad, "count": 0, "value": 0.5}, "source")


@wallaroo.computation("middle")
def middle(message: dict[str, Any]) -> dict[str, Any]:
    """Pass a message on."""
    return spoilt(message, "middle")


@wallaroo.computation("last")
def last(message: dict[str, Any]) -> dict[str, Any]:
    """Pass a message on."""
    return spoilt(message, "last")


@wallaroo.key_extractor
def key(message: dict[str, Any]) -> str:
    """Return the key."""
    return str(message["key"])


class Count:
    """How many messages came."""

    def __init__(self) -> None:
        self.count = 0


@wallaroo.state_computation("total", Count)
def total(message: dict[str, Any], state: Count) -> dict[str, Any]:
    """Count a message, so that a number shows both states."""
    state.count += 1
    return spoilt(message | {"count": message["count"] * 1000 + state.count}, "total")


@wallaroo.encoder
def encode(message: dict[str, Any]) -> str:
    """Write a line."""
    return f"{message['key']} {message['count']}\n"
