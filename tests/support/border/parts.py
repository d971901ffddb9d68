"""Parts of a program in another language; `parts/parts.go` has the same."""

from typing import Any

import wallaroo

BAD: dict[str, Any] = {
    "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "set": {1}, "bytes": b"x", "big": {"deep": [1j]},
}  # fmt: skip


def application_setup(args: list[str]) -> Any:
    """Offer them."""
    return wallaroo.build_library(
        [wallaroo.offer(part, input="json", output="json") for part in (first, second, count, third)]
    )


@wallaroo.computation("first")
def first(message: dict[str, Any]) -> dict[str, Any]:
    """Pass a message on."""
    return message | {"value": BAD[message["bad"]]} if message["place"] == "first" else message


@wallaroo.computation("second")
def second(message: dict[str, Any]) -> dict[str, Any]:
    """Pass a message on."""
    return message


@wallaroo.computation("third")
def third(message: dict[str, Any]) -> dict[str, Any]:
    """Pass a message on."""
    return message


class Count:
    """How many messages came."""

    def __init__(self) -> None:
        self.count = 0


@wallaroo.state_computation("count", Count)
def count(message: dict[str, Any], state: Count) -> dict[str, Any]:
    """Count a message."""
    state.count += 1
    message = message | {"count": state.count}
    return message | {"value": BAD[message["bad"]]} if message["place"] == "count" else message
